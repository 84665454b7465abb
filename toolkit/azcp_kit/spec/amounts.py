"""How much memory a job's pods need, and Kubernetes' own way of writing amounts."""

from __future__ import annotations

import math
import re
from typing import Final

from azcp_kit.spec.job import JobSpec

_RUNTIME_BYTES: Final = 512 << 20
"""Of a rank beside its buffers: interpreter, MPI, connections. 200 MiB were measured; the listing of a
million blobs takes as much again."""

_FACTORS: Final = {
    "": 1.0,
    "m": 0.001,
    **{prefix: 1000.0**power for power, prefix in enumerate("kMGTPE", 1)},
    **{f"{prefix}i": 1024.0**power for power, prefix in enumerate("KMGTPE", 1)},
}
_QUANTITY: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)([a-zA-Z]*)", re.ASCII)
_MIB: Final = 1 << 20


def rank_bytes(job: JobSpec) -> int:
    """Memory of the distributor on a node, without /dev/shm."""
    return (job.distribute.memory_bytes + _RUNTIME_BYTES) * job.rails


def distributor_bytes(job: JobSpec) -> int:
    """The same with /dev/shm: what is written to a memory volume counts in the limit of whoever wrote it."""
    return rank_bytes(job) + job.resources.shm_bytes


def quantity(size_bytes: int) -> str:
    """Bytes as a Kubernetes quantity, rounded up to a mebibyte."""
    mib = math.ceil(size_bytes / _MIB)
    return f"{mib // 1024}Gi" if mib % 1024 == 0 else f"{mib}Mi"


def quantity_bytes(text: str) -> int:
    """Bytes of a Kubernetes quantity.

    Raises:
        ValueError: it is none.
    """
    match = _QUANTITY.fullmatch(text)
    if not match or match[2] not in _FACTORS:
        raise ValueError(f"{text!r} is no Kubernetes quantity")
    return int(float(match[1]) * _FACTORS[match[2]])
