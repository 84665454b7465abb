"""The ranks of a run and how they speak to each other."""
