"""Data sets of random bytes for the benches, written once and read from the page cache."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

KIB: Final = 1024
MIB: Final = 1024 * KIB
GIB: Final = 1024 * MIB

_FILES_PER_FOLDER: Final = 1000


def write_large_files(folder: Path, count: int, size_bytes: int) -> None:
    """Write `count` files of `size_bytes` each, no two of them alike."""
    folder.mkdir(parents=True, exist_ok=True)
    block = os.urandom(4 * MIB)
    for index in range(count):
        with (folder / f"large-{index:03}.bin").open("wb") as file:
            file.write(index.to_bytes(8, "little"))
            left_bytes = size_bytes - 8
            while left_bytes > 0:
                left_bytes -= file.write(block[:left_bytes])


def write_small_files(folder: Path, count: int, size_bytes: int) -> None:
    """Write `count` files of `size_bytes` each, a thousand to a folder."""
    for index in range(count):
        path = folder / f"part-{index // _FILES_PER_FOLDER:03}" / f"small-{index:06}.bin"
        if index % _FILES_PER_FOLDER == 0:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(size_bytes))


def differing_names(source: Path, copy: Path) -> list[str]:
    """The names under `source` whose bytes under `copy` are missing or others."""
    paths = (path for path in sorted(source.rglob("*")) if path.is_file())
    return [str(p.relative_to(source)) for p in paths if not _same_bytes(p, copy / p.relative_to(source))]


def _same_bytes(left: Path, right: Path) -> bool:
    if not right.is_file() or left.stat().st_size != right.stat().st_size:
        return False
    with left.open("rb") as a, right.open("rb") as b:
        while block := a.read(8 * MIB):
            if block != b.read(8 * MIB):
                return False
    return True
