"""Decides which libraries our processes may have: our own, the C library's, and the base's for RDMA."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Final

from azcp_runtime.contract.image import PREFIX

# What glibc is made of, under its names before and since 2.34; libgcc_s is loaded by glibc itself to end a
# thread, and with zlib belongs to every platform that wheels know (PEP 600).
_C_LIBRARY: Final = re.compile(
    r"(?:ld|libc|libm|libmvec|libpthread|libdl|librt|libutil|libresolv|libanl|libnsl|libgcc_s|libz|libnss_\w+)"
    r"(?:-linux[\w.-]*|-[\d.]+)?\.so(?:\.[\d.]+)?"
)
_NAME_SERVICE: Final = re.compile(r"libnss_\w+(?:-[\d.]+)?\.so(?:\.[\d.]+)?")
_RDMA: Final = re.compile(
    r"(?:libibverbs|librdmacm|libibumad|libmlx\d|libefa|libnl(?:-route)?-3|lib\w+-rdmav\d+)\.so(?:\.[\d.]+)?"
)
_OWN_RDMA: Final = "bundled"


def strangers(files: Iterable[str], rdma: str) -> list[str]:
    """The libraries that have no business in a process of ours.

    Args:
        files: absolute paths.
        rdma: what image.toml says of it.
    """
    return sorted({file for file in files if not is_allowed(file, rdma)})


def is_allowed(file: str, rdma: str) -> bool:
    """Whether a process of ours may have this library."""
    name = os.path.basename(file)
    if os.path.normpath(file).startswith(f"{PREFIX}/"):
        return True
    return bool(_C_LIBRARY.fullmatch(name) or (rdma != _OWN_RDMA and is_rdma(name)))


def is_name_service(file: str) -> bool:
    """Whether the C library loads it to look up users or hosts; what it needs is the base's own choice."""
    return _NAME_SERVICE.fullmatch(os.path.basename(file)) is not None


def is_rdma(name: str) -> bool:
    """Whether a library of that name belongs to the fabric's user space."""
    return _RDMA.fullmatch(name) is not None
