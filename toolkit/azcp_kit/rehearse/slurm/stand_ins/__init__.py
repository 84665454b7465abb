"""Stand-ins for Slurm's commands in containers; they run on the image's own /opt/azcp/python, alone."""
