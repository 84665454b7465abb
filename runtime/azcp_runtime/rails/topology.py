"""CPUs as the kernel writes them, and which of them are near to a NUMA node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

_NODES: Final = "devices/system/node"
_MOST_CPUS: Final = 1 << 16


def parse_cpus(text: str) -> frozenset[int]:
    """The CPUs of a list such as 0-3,8.

    Raises:
        ValueError: it is no such list, or empty.
    """
    cpus: set[int] = set()
    for part in text.strip().split(","):
        first, dash, last = part.partition("-")
        low, high = _number(first), _number(last if dash else first)
        if not low <= high < _MOST_CPUS:
            raise ValueError(f"{text!r} is no list of CPUs")
        cpus.update(range(low, high + 1))
    return frozenset(cpus)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f"{text!r} is no number of a CPU")
    return int(text)


def written_cpus(cpus: Iterable[int]) -> str:
    """The same list again; empty for none."""
    spans: list[list[int]] = []
    for cpu in sorted(cpus):
        if spans and spans[-1][1] == cpu - 1:
            spans[-1][1] = cpu
        else:
            spans.append([cpu, cpu])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


def read_numa_cpus(sys_root: Path = Path("/sys")) -> Mapping[int, frozenset[int]]:
    """The CPUs of each NUMA node; a node of memory alone has none, and is left out.

    Args:
        sys_root: where sysfs is mounted.
    """
    found = {}
    for folder in sorted((sys_root / _NODES).glob("node[0-9]*")):
        cpus = _cpus_of(folder / "cpulist")
        if cpus:
            found[int(folder.name.removeprefix("node"))] = cpus
    return MappingProxyType(found)


def read_numa_node(interface: str, sys_root: Path = Path("/sys")) -> int:
    """The NUMA node of a network interface; -1 where the kernel does not say."""
    try:
        return int((sys_root / "class" / "net" / interface / "device" / "numa_node").read_text())
    except (OSError, ValueError):  # a virtual interface has no device
        return -1


def _cpus_of(path: Path) -> frozenset[int]:
    try:
        return parse_cpus(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # sysfs may be hidden from a container
        return frozenset()
