"""The stages of a run, in their order: list, diff, the pass, verify, filelist."""
