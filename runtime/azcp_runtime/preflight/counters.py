"""What the HCAs themselves say has come in: whether it was they that carried the trial."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from azcp_runtime.contract.units import format_size
from azcp_runtime.doctor.check import Check, ok, without_rdma
from azcp_runtime.rails.devices import Devices

_NAME: Final = "carried by"
_WORD: Final = 4
"""The counter is in words of four bytes (InfiniBand's PortRcvData)."""

_ENOUGH: Final = 0.5
"""Of what was received: the counter stands still where TCP carries it, and else has all of it."""


def received_bytes(devices: Devices, sys_root: Path = Path("/sys")) -> int | None:
    """What the ports that carry data have received so far; None where the kernel does not say.

    Args:
        devices: of this node.
        sys_root: where sysfs is mounted.
    """
    counts = []
    for port in devices.usable():
        device, _, number = port.name.rpartition(":")
        folder = sys_root / "class" / "infiniband" / device / "ports" / number / "counters"
        try:
            counts.append(int((folder / "port_rcv_data").read_text(encoding="ascii")))
        except (OSError, ValueError):  # a driver without counters, or a container that hides them
            return None
    return sum(counts) * _WORD if counts else None


def check_carrier(received: int, before: int | None, after: int | None, *, is_required: bool) -> Check | None:
    """Whether what this node received came in through its HCAs; None where nobody can tell.

    Args:
        received: bytes that MPI brought to this rank.
        before: `received_bytes` before they came.
        after: and afterwards.
        is_required: RDMA was asked for.
    """
    if before is None or after is None or after < before or not received:
        return None
    moved = after - before
    if moved >= received * _ENOUGH:
        return ok(_NAME, "the HCAs, by their own counters")
    return without_rdma(
        _NAME,
        f"not the HCAs: they counted {format_size(moved)} of {format_size(received)}",
        "MPI chose TCP between the nodes: are all in one InfiniBand partition, on one fabric?",
        is_required=is_required,
    )
