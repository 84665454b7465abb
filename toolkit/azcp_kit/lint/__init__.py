"""Finds the known traps in a manifest or an sbatch script: read, look through rule by rule, print."""
