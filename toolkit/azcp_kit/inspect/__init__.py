"""Facts of a base image: what is in it, from its config and its files, with nothing of it run."""
