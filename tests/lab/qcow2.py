"""Disk images of QEMU as raw ones: what a distribution is packed in where it publishes no archive."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

# Names and numbers are those of QEMU's docs/interop/qcow2: header, then two levels of tables of clusters.
HEADER: Final = struct.Struct(">4sI12xIQ4xIQ24xQ")
MAGIC: Final = b"QFI\xfb"
VERSION: Final = 3
OFFSET_MASK: Final = 0x00FF_FFFF_FFFF_FE00
COMPRESSED: Final = 1 << 62
ALL_ZERO: Final = 1
SECTOR_BYTES: Final = 512
WINDOW_BITS: Final = -12


@dataclass(frozen=True)
class Qcow2:
    """An open image without a backing file, encryption or incompatible features."""

    stream: IO[bytes]
    cluster_bits: int
    size_bytes: int
    tables: tuple[int, ...]

    @property
    def cluster_bytes(self) -> int:
        """Bytes per cluster."""
        return 1 << self.cluster_bits


def write_raw(source: Path, target: Path) -> None:
    """Write the disk in `source` to `target`, with holes where the disk was never written.

    Raises:
        ValueError: not such an image.
    """
    with source.open("rb") as stream, target.open("wb") as raw:
        disk = _opened(stream)
        raw.truncate(disk.size_bytes)
        for position, content in _clusters(disk):
            raw.seek(position)
            raw.write(content)


def _opened(stream: IO[bytes]) -> Qcow2:
    magic, version, cluster_bits, size_bytes, count, offset, incompatible = HEADER.unpack(
        stream.read(HEADER.size)
    )
    if (magic, version, incompatible) != (MAGIC, VERSION, 0):
        raise ValueError(f"{stream.name} is no plain qcow2 image of version {VERSION}")
    return Qcow2(stream, cluster_bits, size_bytes, _table(stream, offset, count))


def _table(stream: IO[bytes], offset: int, count: int) -> tuple[int, ...]:
    stream.seek(offset)
    return struct.unpack(f">{count}Q", stream.read(8 * count))


def _clusters(disk: Qcow2) -> Iterator[tuple[int, bytes]]:
    per_table = disk.cluster_bytes // 8
    for first, table in enumerate(disk.tables):
        if table & OFFSET_MASK:
            for second, entry in enumerate(_table(disk.stream, table & OFFSET_MASK, per_table)):
                if content := _content(disk, entry):
                    yield (first * per_table + second) * disk.cluster_bytes, content


def _content(disk: Qcow2, entry: int) -> bytes:
    if entry & COMPRESSED:
        return _inflated(disk, entry)
    if entry & ALL_ZERO or not entry & OFFSET_MASK:
        return b""
    disk.stream.seek(entry & OFFSET_MASK)
    return disk.stream.read(disk.cluster_bytes)


def _inflated(disk: Qcow2, entry: int) -> bytes:
    # The offset takes the low bits, the count of further sectors those between it and the two flags.
    offset_bits = 62 - (disk.cluster_bits - 8)
    offset = entry & ((1 << offset_bits) - 1)
    sectors = ((entry & (COMPRESSED - 1)) >> offset_bits) + 1
    disk.stream.seek(offset)
    packed = disk.stream.read(sectors * SECTOR_BYTES - offset % SECTOR_BYTES)
    return zlib.decompressobj(WINDOW_BITS).decompress(packed, disk.cluster_bytes)
