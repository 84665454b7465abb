"""The destination: checks before, partial files during, commits after."""
