"""What this machine offers a rank: memory and CPUs, as far as its container may use them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_CGROUP_LIMITS: Final = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def cpus() -> int:
    """CPUs that this process may run on."""
    return len(os.sched_getaffinity(0))


def available_memory() -> int:
    """Bytes that can be had without swapping, within the container's limit."""
    free = [_meminfo("MemAvailable")]
    for limit, usage in _CGROUP_LIMITS:
        most, used = _number(limit), _number(usage)
        if most is not None and used is not None:
            free.append(max(0, most - used))
    return min(free)


def _meminfo(field: str) -> int:
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/meminfo has no {field}")


def _number(path: str) -> int | None:
    try:
        text = Path(path).read_text(encoding="ascii").strip()
    except OSError:  # this cgroup version is not the machine's
        return None
    return int(text) if text.isdigit() else None
