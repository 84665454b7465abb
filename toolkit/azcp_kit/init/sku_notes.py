"""The facts of a VM size as lines of a comment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from azcp_kit.spec.sku import NumaNode, Sku
from azcp_kit.units import format_size

_GIB: Final = 1 << 30


def sku_notes(sku: Sku) -> tuple[str, ...]:
    """What somebody who fills in the rest of a job.toml wants to know of the machine."""
    return tuple(_notes(sku))


def _notes(sku: Sku) -> Iterator[str]:
    gpus = f"{sku.gpus} x {sku.gpu_model}"
    yield f"The VM size: {sku.arch}, {sku.cpus} CPUs, {sku.memory_gib} GiB of memory, {gpus}."
    yield f"Fabric: {sku.hcas} HCAs of {sku.hca_gbps} Gb/s; to the account: {sku.front_gbps} Gb/s."
    disks = f"{sku.nvme_disks} disks" if sku.nvme_disks else "local disks"
    yield f"NVMe: {disks}, {format_size(sku.nvme_gib * _GIB)} together."
    if sku.numa:
        yield f"NUMA: {'; '.join(_numa_note(at, node) for at, node in enumerate(sku.numa))}."
    if sku.topology:
        yield f"NCCL's topology file: {sku.topology}."
    if len(sku.page_kib) > 1:
        sizes = " or ".join(str(size) for size in sku.page_kib)
        yield f"Pages of {sizes} KiB, by the node image's kernel; images must be built for {sku.arch}."
    yield f"A pod can have {sku.pod_memory_gib} GiB of memory at most, /dev/shm included."


def _numa_note(at: int, node: NumaNode) -> str:
    hcas = f"HCAs {_enumerated(node.hcas)}"
    return f"node {at} {f'CPUs {node.cpus[0]}-{node.cpus[-1]}, ' if node.cpus else ''}{hcas}"


def _enumerated(numbers: Sequence[int]) -> str:
    return ", ".join(str(number) for number in numbers)
