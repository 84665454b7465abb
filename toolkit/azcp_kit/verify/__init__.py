"""Proves that an injected image works, and that its base is as it was."""
