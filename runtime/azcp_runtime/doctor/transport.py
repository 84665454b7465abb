"""Which transport carries the broadcast: what Open MPI has chosen, or would choose."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from azcp_runtime.doctor.check import Check, few, ok, without_rdma
from azcp_runtime.doctor.libraries import UcxAnswer
from azcp_runtime.source.names import shown

_NAME: Final = "transport"
_RDMA: Final = ("rc", "ud", "dc")
"""How the names of UCX's transports over verbs begin: rc_mlx5, ud_verbs, dc_mlx5."""

_SELECTED: Final = "mca_pml_base_selected_component"
_HEADER_BYTES: Final = 160
_PROJECT_AT: Final = 12
_TYPE_AT: Final = 40
_COMPONENT_AT: Final = 84
"""Offsets of the names in mca_base_component_t, the same in Open MPI 4.x and 5.x: three integers
before each, names of 16 and 32 bytes. They are used only where the first two are as expected."""


def chosen_pml(libmpi: str | None) -> str:
    """The point-to-point layer that this process's MPI library has chosen; empty where it cannot be told.

    Args:
        libmpi: its path, as it is mapped; None where MPI was not started.
    """
    if libmpi is None:
        return ""
    try:
        header = (ctypes.c_char * _HEADER_BYTES).in_dll(ctypes.CDLL(libmpi), _SELECTED).raw
    except (OSError, ValueError):  # another MPI, or one that hides the symbol
        return ""
    return pml_name(header)


def pml_name(header: bytes) -> str:
    """The component's name in an mca_base_component_t; empty where the bytes are something else."""
    project, kind, name = (_text(header, at) for at in (_PROJECT_AT, _TYPE_AT, _COMPONENT_AT))
    return name if (project, kind) == ("ompi", "pml") else ""


def mapped_libmpi(maps: str) -> str | None:
    """The libmpi of a process, by what /proc/self/maps says; None where there is none."""
    return next(_mapped(maps, "/libmpi.so."), None)


def mapped_libucp(maps: str) -> Path | None:
    """The libucp of a process; None where its MPI library has not loaded one."""
    return next(map(Path, _mapped(maps, "/libucp.so.")), None)


def check_transport(pml: str, facts: UcxAnswer, *, is_required: bool) -> Check:
    """Whether data goes by RDMA.

    Args:
        pml: what Open MPI has chosen; empty where it was not started.
        facts: what UCX says.
        is_required: RDMA was asked for.
    """
    rdma = [(transport, device) for transport, device in facts.transports if _is_rdma(transport)]
    if not rdma:
        why = f"; UCX: {facts.error}" if facts.error else f"; UCX {facts.version} sees no RDMA device"
        found = f"TCP ({pml})" if pml else "it would be TCP"
        remedy = "see memlock, verbs devices and verbs providers"
        remedy += "" if is_required else "; --allow-tcp where TCP is meant"
        return without_rdma(_NAME, found + why, remedy, is_required=is_required)
    names, devices = few(sorted({each for each, _ in rdma})), few(sorted({each for _, each in rdma}))
    if facts.error:
        return without_rdma(
            _NAME,
            f"UCX has {names} on {devices} and cannot open it: {facts.error}",
            "most often the limit on locked memory, or a device file; see memlock and verbs devices",
            is_required=is_required,
        )
    if pml not in ("", "ucx"):
        return without_rdma(
            _NAME,
            f"Open MPI chose {pml}, although UCX has {names} on {devices}",
            "AZCP_ENV_OMPI_MCA_pml=ucx makes it fail instead of choosing another, and say why",
            is_required=is_required,
        )
    verb = "is" if pml else "would be"
    return ok(_NAME, f"it {verb} UCX {facts.version}: {names} on {devices}")


def _mapped(maps: str, part: str) -> Iterator[str]:
    return (line.split(maxsplit=5)[-1] for line in maps.splitlines() if part in line)


def _is_rdma(transport: str) -> bool:
    return transport.partition("_")[0] in _RDMA


def _text(header: bytes, at: int) -> str:
    return shown(header[at:].partition(b"\0")[0])
