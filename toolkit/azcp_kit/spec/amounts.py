"""How much memory a job's pods need."""

from __future__ import annotations

from typing import Final

from azcp_kit.spec.job import JobSpec

_RUNTIME_BYTES: Final = 512 << 20
"""Of a rank beside its buffers: interpreter, MPI, connections. 200 MiB were measured; the listing of a
million blobs takes as much again."""


def distributor_bytes(job: JobSpec, ranks: int | None = None) -> int:
    """Memory of the distributor on a node.

    With /dev/shm, for what is written to a memory volume counts in the limit of whoever wrote it.

    Args:
        job: whose.
        ranks: on the node; None for as many as the job's rails.
    """
    each = job.distribute.memory_bytes + _RUNTIME_BYTES
    return each * (ranks or job.most_rails) + job.resources.shm_bytes
