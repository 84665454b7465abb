"""Where the image's loader finds libraries, from /etc/ld.so.cache.

The layout is that of glibc's elf/dl-cache.h: a header of 48 bytes that begins with the magic, entries of 24
bytes (flags, offset of the name, offset of the path, OS version, hardware capabilities), then the strings.
Before glibc 2.32 an older table comes first, and offsets count from the second magic.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

PATH: Final = "/etc/ld.so.cache"
LIMIT_BYTES: Final = 8 * 2**20

_MAGIC: Final = b"glibc-ld.so.cache1.1"
_HEADER: Final = struct.Struct("<20sII20x")
_ENTRY: Final = struct.Struct("<iIIIQ")
_LONGEST_STRING: Final = 4096


def parse_ld_cache(content: bytes) -> Mapping[str, tuple[str, ...]]:
    """Paths by library name, in the loader's order; empty for what is no such cache."""
    start = content.find(_MAGIC)
    table = content[start:] if start >= 0 else b""
    if len(table) < _HEADER.size:
        return {}
    _, count, _ = _HEADER.unpack_from(table)
    whole = min(count, (len(table) - _HEADER.size) // _ENTRY.size)
    found: dict[str, dict[str, None]] = {}
    for index in range(whole):
        _, name, path, _, _ = _ENTRY.unpack_from(table, _HEADER.size + index * _ENTRY.size)
        found.setdefault(_string(table, name), {})[_string(table, path)] = None
    return {name: tuple(paths) for name, paths in found.items() if name}


def _string(table: bytes, offset: int) -> str:
    piece = table[offset : offset + _LONGEST_STRING]
    return piece.partition(b"\0")[0].decode("utf-8", "replace")
