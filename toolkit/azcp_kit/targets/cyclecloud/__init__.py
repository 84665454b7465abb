"""A CycleCloud project: NVMe disks, enroot and pyxis on the nodes of a Slurm cluster."""
