"""The runtime in the image: list, plan, one pass of fetch, broadcast and write, commit, verify."""

__version__ = "0.1.0"
