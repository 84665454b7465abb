"""The toolkit: what a user runs on a workstation or a login node."""

__version__ = "0.1.0"
