"""What this machine offers a rank: memory and CPUs, as far as its container may use them."""

from __future__ import annotations

import math
import os
from functools import cache
from pathlib import Path
from typing import Final

_CGROUPS: Final = Path("/sys/fs/cgroup")


@cache
def allowed_cpus() -> frozenset[int]:
    """CPUs that this process was allowed when it first asked: a rank then keeps to some of them."""
    return frozenset(os.sched_getaffinity(0))


def cpus() -> int:
    """How many CPUs the ranks of this node may run on, together."""
    return len(allowed_cpus())


def cpu_quota(membership: str | None = None, root: Path = _CGROUPS) -> float:
    """CPUs that the group which this process is in may use at a time; infinite without a limit.

    Args:
        membership: what /proc/self/cgroup says; read from there when None.
        root: where the control groups are mounted.
    """
    if membership is None:
        membership = Path("/proc/self/cgroup").read_text(encoding="utf-8")
    quotas = [math.inf]
    for line in membership.splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            quotas += [_quota(group / "cpu.max") for group in _groups(root, path)]
    return min(quotas)


def available_memory(membership: str | None = None, root: Path = _CGROUPS) -> int:
    """Bytes that can be had without swapping, within the limits of every group that this process is in.

    Args:
        membership: what /proc/self/cgroup says; read from there when None.
        root: where the control groups are mounted.
    """
    if membership is None:
        membership = Path("/proc/self/cgroup").read_text(encoding="utf-8")
    rooms = [_meminfo("MemAvailable")]
    for line in membership.splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers in ("", "memory") or "memory" in controllers.split(","):
            rooms += _rooms_above(root if not controllers else root / "memory", path)
    return min(rooms)


def _rooms_above(mount: Path, path: str) -> list[int]:
    """What is left below the limit of a group and of each above it; a container may see only its own."""
    return [room for group in _groups(mount, path) for room in _room(group)]


def _groups(mount: Path, path: str) -> list[Path]:
    group = mount / path.lstrip("/")
    return [each for each in (group, *group.parents) if each.is_relative_to(mount)]


def _quota(file: Path) -> float:
    """What a cpu.max of "QUOTA PERIOD" comes to; "max" is no limit."""
    try:
        quota, period = file.read_text(encoding="ascii").split()
        return math.inf if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):  # no such controller here
        return math.inf


def _room(group: Path) -> list[int]:
    limits = (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes"))
    for limit_name, usage_name in limits:
        limit, usage = _number(group / limit_name), _number(group / usage_name)
        if limit is not None and usage is not None:
            # Clean page cache counts as used, but makes room when memory is asked for.
            return [max(0, limit - usage + _inactive_file(group))]
    return []


def _inactive_file(group: Path) -> int:
    try:
        lines = (group / "memory.stat").read_text(encoding="ascii").splitlines()
    except OSError:  # no such controller here
        return 0
    fields = dict(line.split(maxsplit=1) for line in lines)
    return int(fields.get("inactive_file", fields.get("total_inactive_file", 0)))


def _meminfo(field: str) -> int:
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/meminfo has no {field}")


def _number(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError:  # this group has no such file
        return None
    return int(text) if text.isdigit() else None
