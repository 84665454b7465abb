"""Rehearsals of batch scripts: on the Slurm that is here, or on containers with stand-ins for it."""
