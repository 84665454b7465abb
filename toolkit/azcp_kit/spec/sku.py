"""What each VM size has, from skus.toml: read once, when it is first asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from azcp_runtime.contract import UsageError

from azcp_kit.shown import shown

SKUS: Final = Path(__file__).with_name("skus.toml")
"""The file of the facts, with the source of each."""

DEFAULT_SKU: Final = "Standard_ND96isr_H100_v5"
"""What is proposed where nothing was said."""

_PREFIX: Final = "standard_"


@dataclass(frozen=True, slots=True)
class NumaNode:
    """A part of the machine with its own memory.

    Args:
        cpus: that are in it; empty where it is not known.
        hcas: indexes of the HCAs that are nearest to it.
    """

    cpus: range
    hcas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sku:
    """The facts of a VM size.

    Args:
        name: Azure's own.
        cpus: that the VM sees.
        memory_gib: of the size; the kernel takes 1/64 of it.
        arch: amd64 or arm64, as image platforms are called.
        gpus: how many.
        gpu_model: for people to read.
        gpu_resource: name of the device plugin's resource.
        hcas: InfiniBand ports of the back-end network.
        hca_gbps: of one of them.
        front_gbps: of the Ethernet that reaches the account.
        nvme_disks: local disks; None where it is not known.
        nvme_gib: of all of them together, at least.
        page_kib: page sizes that the kernels of its node images have.
        shm_gib: a good size of /dev/shm.
        headroom_gib: memory that a pod must leave to the node.
        topology: file name of NCCL's topology; empty where there is none.
        task_masks: CPU masks of one task per GPU, hexadecimal, in the order of the tasks; empty if not known.
        numa: its NUMA nodes; empty if not known.
    """

    name: str
    cpus: int
    memory_gib: int
    arch: str
    gpus: int
    gpu_model: str
    gpu_resource: str
    hcas: int
    hca_gbps: int
    front_gbps: int
    nvme_disks: int | None
    nvme_gib: int
    page_kib: tuple[int, ...]
    shm_gib: int
    headroom_gib: int
    topology: str
    task_masks: tuple[str, ...]
    numa: tuple[NumaNode, ...]

    @property
    def pod_memory_gib(self) -> int:
        """The most that one pod can ask for and still be scheduled, /dev/shm included."""
        return self.memory_gib - self.headroom_gib


@cache
def load_skus() -> Mapping[str, Sku]:
    """Every size by its name."""
    import tomllib

    tables = tomllib.loads(SKUS.read_text(encoding="utf-8"))
    return MappingProxyType({name: _sku(name, table) for name, table in tables.items()})


def find_sku(name: str) -> Sku:
    """The size of that name, in any case, with or without `Standard_`.

    Raises:
        UsageError: there is none; it tells the nearest names.
    """
    by_key = {_key(known): sku for known, sku in load_skus().items()}
    if sku := by_key.get(_key(name)):
        return sku
    raise UsageError(
        f"'{shown(name, 80)}' is no VM size whose facts are known", remedy=_proposal(name, by_key)
    )


def _proposal(name: str, by_key: Mapping[str, Sku]) -> str:
    import difflib

    part = _key(name)
    # People say gb300 too.
    near = [key for key in by_key if part and part in key] or difflib.get_close_matches(part, by_key, 3)
    names = ", ".join(by_key[key].name for key in near or by_key)
    return f"did you mean {names}?" if near else f"known are {names}"


def _key(name: str) -> str:
    return name.lower().removeprefix(_PREFIX)


def _sku(name: str, table: Mapping[str, Any]) -> Sku:
    return Sku(
        name=name,
        cpus=table["cpus"],
        memory_gib=table["memory-gib"],
        arch=table["arch"],
        gpus=table["gpus"],
        gpu_model=table["gpu-model"],
        gpu_resource=table["gpu-resource"],
        hcas=table["hcas"],
        hca_gbps=table["hca-gbps"],
        front_gbps=table["front-gbps"],
        nvme_disks=table.get("nvme-disks"),
        nvme_gib=table["nvme-gib"],
        page_kib=tuple(table["page-kib"]),
        shm_gib=table["shm-gib"],
        headroom_gib=table["headroom-gib"],
        topology=table.get("topology", ""),
        task_masks=tuple(table.get("task-masks", ())),
        numa=tuple(_numa_node(node) for node in table.get("numa", ())),
    )


def _numa_node(node: Mapping[str, Any]) -> NumaNode:
    return NumaNode(cpus=_cpus(node.get("cpus", "")), hcas=tuple(node["hcas"]))


def _cpus(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last) + 1) if text else range(0)
