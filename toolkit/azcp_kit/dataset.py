"""The data set of the demo: a few large files and many small ones with the names that break naive tools."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SMALL_FILES: Final = 1000
SMALL_FILE_MAX_BYTES: Final = 64 * 1024
# One file of half the bytes must be cut into ranges to be shared; none ends on a block boundary.
LARGE_FILE_SHARES: Final = (0.5, 0.2, 0.15, 0.1, 0.05)
WRITE_BYTES: Final = 8 * 2**20
ODD_SIZES: Final = (0, 1, 511, 512, 4095, 4096, 4097)
ODD_NAMES: Final = (
    "with space.txt",
    " leading and trailing .txt ",
    "percent%2Fencoded.txt",
    "percent%.txt",
    "hash#fragment.txt",
    "query?a=b&c=d.txt",
    "plus+sign.txt",
    "quote'\".txt",
    "brackets[0]{1}(2).txt",
    "semi;colon,comma=equals@at$dollar!.txt",
    "tilde~caret^backtick`pipe|.txt",
    "-leading-dash.txt",
    ".hidden",
    "Größe-数据-данные-🚀.txt",
    "e\u0301 decomposed and é composed.txt",
    "no-extension",
    "a" * 200 + ".txt",
)
DEEP_FOLDER: Final = "/".join(f"level {depth}" for depth in range(12))


@dataclass(frozen=True)
class DataSet:
    """What lies in a folder: the number of files and their bytes."""

    files: int
    size_bytes: int


def data_set_layout(size_bytes: int, seed: int, small_files: int = SMALL_FILES) -> Iterator[tuple[str, int]]:
    """Relative name and size of each file, the same for the same arguments; large files fill up the size."""
    numbers = random.Random(seed)
    small = list(_odd_files()) + [
        (f"samples/{index % 40:02d}/{index:05d}.json", numbers.randrange(SMALL_FILE_MAX_BYTES))
        for index in range(small_files)
    ]
    yield from small
    rest = max(0, size_bytes - sum(size for _, size in small))
    for index, share in enumerate(LARGE_FILE_SHARES):
        yield f"checkpoint/weights-{index:05d}-of-{len(LARGE_FILE_SHARES):05d}.safetensors", int(rest * share)


def make_data_set(folder: Path, size_bytes: int, seed: int = 1, small_files: int = SMALL_FILES) -> DataSet:
    """Write the files of data_set_layout under `folder`; their bytes depend on the arguments alone."""
    numbers = random.Random(seed)
    files = total = 0
    for name, size in data_set_layout(size_bytes, seed, small_files):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            for start in range(0, size, WRITE_BYTES):
                file.write(numbers.randbytes(min(WRITE_BYTES, size - start)))
        files, total = files + 1, total + size
    return DataSet(files, total)


def _odd_files() -> Iterator[tuple[str, int]]:
    for index, name in enumerate(ODD_NAMES):
        yield f"names/{name}", ODD_SIZES[index % len(ODD_SIZES)] + 64 * index
    for size in ODD_SIZES:
        yield f"sizes/{size} bytes.bin", size
    yield f"{DEEP_FOLDER}/bottom.txt", 100
