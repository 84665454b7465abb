"""How much memory a job's pods need."""

from __future__ import annotations

from typing import Final

from azcp_kit.spec.job import JobSpec

_RUNTIME_BYTES: Final = 512 << 20
"""Of a rank beside its buffers: interpreter, MPI, connections. 200 MiB were measured; the listing of a
million blobs takes as much again."""


def rank_bytes(job: JobSpec) -> int:
    """Memory of the distributor on a node, without /dev/shm."""
    return (job.distribute.memory_bytes + _RUNTIME_BYTES) * job.most_rails


def distributor_bytes(job: JobSpec) -> int:
    """The same with /dev/shm: what is written to a memory volume counts in the limit of whoever wrote it."""
    return rank_bytes(job) + job.resources.shm_bytes
