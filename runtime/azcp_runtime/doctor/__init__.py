"""azcp-doctor: what would slow a run down or end it, found on every node before the first byte."""
