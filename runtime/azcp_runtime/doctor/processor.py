"""CPUs, memory and pages that this node gives a rank."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azcp_runtime.doctor.check import Amount, Check, ok, warn
from azcp_runtime.machine import available_memory, cpus
from azcp_runtime.plan.chunks import ALIGN

_FEWEST_PER_RANK: Final = 2
"""One for MPI's progress, one for TLS and writes; a rank with less delays all the others."""

_LEAST_MEMORY_PER_RANK: Final = 1 << 30
_CGROUPS: Final = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Processor:
    """What a process may use here.

    Attributes:
        cpus: CPUs it may run on.
        quota: CPUs' worth of time per second that its groups allow; None without a limit.
        page_bytes: the size of a page.
        memory_bytes: what can be had without swapping.
    """

    cpus: int
    quota: float | None
    page_bytes: int
    memory_bytes: int


def read_processor(membership: str | None = None, root: Path = _CGROUPS) -> Processor:
    """Those of this process.

    Args:
        membership: what /proc/self/cgroup says; read from there when None.
        root: where the control groups are mounted.
    """
    if membership is None:
        membership = _text(Path("/proc/self/cgroup"))
    quota = min(_quotas(membership, root), default=None)
    return Processor(cpus(), quota, os.sysconf("SC_PAGE_SIZE"), available_memory())


def check_processor(facts: Processor, rails: int) -> Check:
    """Whether the ranks of this node have time enough."""
    usable = min(facts.cpus, facts.quota or facts.cpus)
    limit = f", a quota of {facts.quota:.1f}" if facts.quota is not None else ""
    found = f"{facts.cpus} CPUs{limit}, {rails} rank{'s' if rails > 1 else ''} on this node"
    if usable < _FEWEST_PER_RANK * rails:
        return warn("cpu", found, f"give each rank {_FEWEST_PER_RANK} CPUs: raise the container's limit")
    return ok("cpu", found)


def check_memory(facts: Processor, rails: int) -> Check:
    """Whether the buffers have room."""
    amount = Amount(facts.memory_bytes, "bytes")
    if facts.memory_bytes < rails * _LEAST_MEMORY_PER_RANK:
        return warn(
            "memory", "buffers will be small, available are", "raise the container's memory limit", amount
        )
    return ok("memory", "available", amount)


def check_page_size(facts: Processor) -> Check:
    """Buffers are page-aligned and writes aligned to 4 KiB: with any larger page both hold."""
    if facts.page_bytes % ALIGN:
        return warn("page size", f"{facts.page_bytes} bytes", "run with --no-bcast-direct")
    return ok("page size", f"{facts.page_bytes >> 10} KiB")


def _quotas(membership: str, root: Path) -> Iterator[float]:
    """The limit of each group that the process is in and of those above; a container may see only its own."""
    for line in membership.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        mount = root if not controllers else root / "cpu"
        if controllers and "cpu" not in controllers.split(","):
            continue
        group = mount / path.lstrip("/")
        for each in (group, *group.parents):
            if each.is_relative_to(mount) and (quota := _quota(each)) is not None:
                yield quota


def _quota(group: Path) -> float | None:
    text = (
        _text(group / "cpu.max")
        or f"{_text(group / 'cpu.cfs_quota_us')} {_text(group / 'cpu.cfs_period_us')}"
    )
    words = text.split()
    if len(words) != 2 or not all(word.isdigit() for word in words):  # noqa: PLR2004 - a quota and its period
        return None  # "max", -1, or no such controller
    return int(words[0]) / int(words[1])


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape").strip()
    except OSError:  # this group has no such file
        return ""
