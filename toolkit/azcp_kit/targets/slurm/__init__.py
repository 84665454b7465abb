"""Scripts for Slurm: the batch job itself, and the import of its image."""
