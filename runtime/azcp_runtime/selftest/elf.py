"""The few fields of a 64-bit ELF file that tell how the loader will look for what it needs (elf(5))."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from azcp_runtime.contract import PreflightError

_HEADER: Final = struct.Struct("<4s12xHHIQQQIHHH")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_ENTRY: Final = struct.Struct("<qQ")
_MAGIC: Final = b"\x7fELF"
_EXECUTABLE_OR_SHARED: Final = (2, 3)
_PT_DYNAMIC: Final = 2
_PT_INTERP: Final = 3
_DT_RUNPATH: Final = 29


@dataclass(frozen=True, slots=True)
class Elf:
    """One program or shared library.

    Args:
        path: where it lies.
        interpreter: the loader that it names; empty for a library.
        has_runpath: whether it has DT_RUNPATH, which comes after LD_LIBRARY_PATH.
    """

    path: str
    interpreter: str
    has_runpath: bool


def elf_files(folder: str) -> Iterator[Elf]:
    """Every dynamic program and library below the folder, in a stable order; links are not followed."""
    for root, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(root, name)
            if not os.path.islink(path) and (found := read_elf(path)):
                yield found


def read_elf(path: str) -> Elf | None:
    """The fields; None for what is no dynamic ELF file.

    Raises:
        PreflightError: the file begins as one and is cut or garbled.
    """
    with open(path, "rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            return None
        file.seek(0)
        content = file.read()
    try:
        return _parse(path, content)
    except struct.error as error:
        raise PreflightError(f"{path} is damaged: {error}", remedy="build the image again") from error


def _parse(path: str, content: bytes) -> Elf | None:
    _, kind, _, _, _, table, _, _, _, size, count = _HEADER.unpack_from(content)
    if kind not in _EXECUTABLE_OR_SHARED:
        return None
    segments = [_SEGMENT.unpack_from(content, table + size * number) for number in range(count)]
    interpreter, has_runpath, is_dynamic = "", False, False
    for each, _, offset, _, _, length, _, _ in segments:
        if each == _PT_INTERP:
            interpreter = os.fsdecode(content[offset : offset + length].rstrip(b"\0"))
        elif each == _PT_DYNAMIC:
            is_dynamic = True
            tags = _ENTRY.iter_unpack(content[offset : offset + length])
            has_runpath = any(tag == _DT_RUNPATH for tag, _ in tags)
    return Elf(path, interpreter, has_runpath) if is_dynamic or interpreter else None
