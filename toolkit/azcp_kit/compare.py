"""Compares folders with their source byte by byte, without a word from the program that filled them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

THREADS: Final = 4
BLOCK_BYTES: Final = 2**20


@dataclass(frozen=True)
class Comparison:
    """What was read of the source, and one line for each difference of a copy."""

    files: int
    size_bytes: int
    differences: tuple[str, ...]


def compare_folders(source: Path, copies: Sequence[Path], ignore: frozenset[str]) -> Comparison:
    """Compare the bytes of every file under `source` with each copy, and look for files that are too many.

    Args:
        source: the folder that is right by definition.
        copies: folders that should hold the same.
        ignore: names at the top of a folder that belong to no data set.
    """
    names = file_names(source, ignore)
    differences = [
        f"{copy / name} is not in the source"
        for copy in copies
        for name in sorted(file_names(copy, ignore) - names)
    ]
    with ThreadPoolExecutor(THREADS) as pool:
        for lines in pool.map(lambda name: _different_copies(source, copies, name), sorted(names)):
            differences.extend(lines)
    size_bytes = sum((source / name).stat().st_size for name in names)
    return Comparison(len(names), size_bytes, tuple(differences))


def file_names(folder: Path, ignore: frozenset[str] = frozenset()) -> set[str]:
    """The files under `folder` as relative names, without what is named `ignore` at its top."""
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return {name for name in names if name.split("/", 1)[0] not in ignore}


def folder_bytes(folder: Path) -> int:
    """The bytes of all files under `folder`."""
    return sum((folder / name).stat().st_size for name in file_names(folder))


def _different_copies(source: Path, copies: Sequence[Path], name: str) -> list[str]:
    missing = [copy for copy in copies if not (copy / name).is_file()]
    present = [copy for copy in copies if copy not in missing]
    lines = [f"{copy / name} is missing" for copy in missing]
    with ExitStack() as stack:
        original = stack.enter_context((source / name).open("rb"))
        files = {copy: stack.enter_context((copy / name).open("rb")) for copy in present}
        different = _different_files(original, files)
    return lines + [f"{copy / name} differs from the source" for copy in present if copy in different]


def _different_files(original: IO[bytes], files: Mapping[Path, IO[bytes]]) -> set[Path]:
    """Those of `files` whose bytes or length differ; each block of the original is read once."""
    different: set[Path] = set()
    while True:
        block = original.read(BLOCK_BYTES)
        # At its end the original reads as empty, and a copy that is too long does not.
        different |= {copy for copy, file in files.items() if file.read(BLOCK_BYTES) != block}
        if not block:
            return different
