"""A real Slurm cluster on this machine: a controller and nodes, each in namespaces of its own."""

from tests.lab.slurm.cluster import Cluster, slurm_cluster
from tests.lab.slurm.job import ENDED, JobRecord
from tests.lab.slurm.site import lacking

__all__ = ["ENDED", "Cluster", "JobRecord", "lacking", "slurm_cluster"]
