"""What processor a program is compiled for, from its ELF header."""

from __future__ import annotations

import struct
from types import MappingProxyType
from typing import Final

HEADER_BYTES: Final = 20

_MACHINES: Final = MappingProxyType(
    {3: "386", 21: "ppc64le", 22: "s390x", 40: "arm", 62: "amd64", 183: "arm64", 243: "riscv64"}
)
"""e_machine of the ELF specification by the names that image configs use."""


def elf_arch(header: bytes) -> str:
    """The architecture as an image's config would name it; empty for another, and for no ELF file."""
    if len(header) < HEADER_BYTES or header[:4] != b"\x7fELF":
        return ""
    is_little = header[5] == 1
    (machine,) = struct.unpack_from("<H" if is_little else ">H", header, 18)
    return _MACHINES.get(machine, "")
