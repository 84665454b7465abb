"""What every run looks at before its first byte: the checks of azcp-doctor that take no time."""
