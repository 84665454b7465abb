"""Shared memory: ranks of one node speak through it, and containers start with 64 MiB."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azcp_runtime.contract.units import format_size
from azcp_runtime.doctor.check import Amount, Check, fail, ok, warn

_NAME: Final = "/dev/shm"  # noqa: S108 - it is what is looked at
_MIB: Final = 1 << 20
_LEAST_PER_RANK: Final = 8 * _MIB
"""Open MPI's vader maps 4 MiB per rank and its collectives as much again; beyond the end is SIGBUS."""

_GOOD_PER_RANK: Final = 32 * _MIB
"""With it queues may grow as they do between busy ranks."""

_REMEDY: Final = (
    "--shm-size (Docker), or an emptyDir of medium Memory mounted there (Kubernetes), "
    "which counts as the pod's memory"
)


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """The file system behind it; a size of 0 where there is none.

    Attributes:
        size_bytes: its limit.
        free_bytes: what is left.
        is_writable: for this user.
    """

    size_bytes: int
    free_bytes: int
    is_writable: bool


def read_shared_memory(path: Path = Path(_NAME)) -> SharedMemory:
    """What is there now."""
    try:
        disk = os.statvfs(path)
    except OSError:  # some images have no such folder
        return SharedMemory(0, 0, is_writable=False)
    size, free = disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize
    return SharedMemory(size, free, os.access(path, os.W_OK | os.X_OK))


def check_shared_memory(facts: SharedMemory, rails: int, wanted_bytes: int | None) -> Check:
    """Whether it is enough.

    Args:
        facts: what is there.
        rails: ranks on this node; one alone does not use it.
        wanted_bytes: what --shm asks for.
    """
    size = Amount(facts.size_bytes, "bytes")
    if wanted_bytes is not None and facts.size_bytes < wanted_bytes:
        return fail(_NAME, f"{format_size(wanted_bytes)} are wanted, it has", _REMEDY, size)
    if rails == 1:
        return ok(_NAME, "not used by one rank per node; it has", size)
    if not facts.is_writable:
        return fail(_NAME, f"{rails} ranks per node need it, and it cannot be written", _REMEDY)
    if facts.free_bytes < rails * _LEAST_PER_RANK:
        least = format_size(rails * _LEAST_PER_RANK)
        return fail(_NAME, f"{rails} ranks need {least}, free is", _REMEDY, Amount(facts.free_bytes, "bytes"))
    if facts.free_bytes < rails * _GOOD_PER_RANK:
        return warn(
            _NAME, f"scarce for {rails} ranks per node, free is", _REMEDY, Amount(facts.free_bytes, "bytes")
        )
    return ok(_NAME, "", size)
