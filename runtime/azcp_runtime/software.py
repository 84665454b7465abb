"""Versions and transport for the report, told by the libraries that are loaded."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from azcp_runtime import __version__
from azcp_runtime.doctor.transport import chosen_pml, mapped_libmpi

_LONGEST: Final = 256
"""MPI_MAX_LIBRARY_VERSION_STRING of Open MPI."""

_CHOICES: Final = (
    "OMPI_MCA_btl",
    "OMPI_MCA_btl_tcp_if_include",
    "UCX_TLS",
    "UCX_NET_DEVICES",
)


def versions(maps: str) -> dict[str, str]:
    """Versions by name; empty where MPI was not started.

    Args:
        maps: what /proc/self/maps says.
    """
    return {
        "azcp": __version__,
        "Open MPI": _mpi_version(mapped_libmpi(maps)),
        "UCX": _ucx_version(mapped_libucp(maps)),
        "Python": platform.python_version(),
        "Linux": os.uname().release,
    }


def transport(maps: str, env: Mapping[str, str]) -> dict[str, str]:
    """The point-to-point layer that MPI chose, and what the environment says of the choice."""
    pml = chosen_pml(mapped_libmpi(maps))
    return ({"pml": pml} if pml else {}) | {name: env[name] for name in _CHOICES if env.get(name)}


def memory_maps() -> str:
    """What is mapped into this process."""
    return Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")


def mapped_libucp(maps: str) -> str | None:
    """The libucp of a process, by what /proc/self/maps says; None where there is none."""
    paths = (line.split(maxsplit=5)[-1] for line in maps.splitlines() if "/libucp.so." in line)
    return next(paths, None)


def _mpi_version(libmpi: str | None) -> str:
    """4.1.8 of "Open MPI v4.1.8, package: ..."; MPI lets it be asked at any time."""
    if libmpi is None:
        return ""
    text, length = ctypes.create_string_buffer(_LONGEST), ctypes.c_int()
    try:
        ctypes.CDLL(libmpi).MPI_Get_library_version(text, ctypes.byref(length))
    except (OSError, AttributeError):  # an MPI that is older than the call
        return ""
    name = text.value.decode("utf-8", "replace").partition(",")[0]
    return name.removeprefix("Open MPI v")


def _ucx_version(libucp: str | None) -> str:
    if libucp is None:
        return ""
    try:
        ask = ctypes.CDLL(libucp).ucp_get_version_string
    except (OSError, AttributeError):
        return ""
    ask.restype = ctypes.c_char_p
    return str((ask() or b"").decode("ascii", "replace"))
