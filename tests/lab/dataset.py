"""Data sets that hurt: hard names, sizes at every edge, directory markers; the same ones for each seed."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from tests.lab.content import Content
from tests.lab.trees import Entry

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DEPTH: Final = 20
SMALL_BYTES: Final = 40_000

HARD_NAMES: Final = (
    "with space",
    " leading and trailing ",
    "literal%2Fslash",
    "100%",
    "hash#tag",
    "plus+plus",
    "what?query=1",
    "amp&ersand;semicolon",
    "single'quote",
    'double"quote',
    "colon:equals=comma,at@",
    "glob*[x]{y}",
    "dollar$(x)`y`",
    "~tilde",
    "-dash",
    ".hidden",
    "ends.with.dots..",
    "tab\there",
    "delete\x7f",
    "angle<b>bracket",
    "nfc-\u00e9",
    "nfd-e\u0301",
    "\u65e5\u672c\u8a9e/\u30d5\u30a1\u30a4\u30eb",
    "emoji-\U0001f680",
    "no-break\u00a0space",
    "right-to-left-\u202e",
    "/".join(f"level {level}" for level in range(DEPTH)) + "/deep.bin",
    "long-" + "n" * 250,
    "/".join("p" * 195 for _ in range(5)),
)


# The service keeps these as they are; Azurite makes a slash of the first and cannot list the others.
NAMES_BEYOND_AZURITE: Final = ("back\\slash", "bell\x07.bin", "escape\x1b[31m", "not-a-character-\ufffe")


@dataclass(frozen=True)
class Blob:
    """A blob to be; `in_blocks` uploads it in several calls, which leaves it without Content-MD5."""

    name: str
    content: Content
    in_blocks: bool = False


@dataclass(frozen=True)
class Marker:
    """An empty blob that stands for a folder and must not become a file."""

    name: str
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DataSet:
    """Blobs by names relative to the prefix, and the markers beside them."""

    blobs: tuple[Blob, ...]
    markers: tuple[Marker, ...] = ()

    @property
    def total_bytes(self) -> int:
        """What the account must serve, once."""
        return sum(blob.content.size for blob in self.blobs)

    @cached_property
    def manifest(self) -> dict[str, Entry]:
        """What each destination must hold in the end."""
        return {blob.name: Entry(blob.content.size, blob.content.sha256()) for blob in self.blobs}

    def write_to(self, folder: Path) -> None:
        """Make a directory source of it; a directory has no use for markers."""
        for blob in self.blobs:
            path = folder / blob.name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as stream:
                stream.writelines(blob.content.pieces())


def edge_sizes(chunk_bytes: int) -> tuple[int, ...]:
    """The sizes at which a block, a page or a chunk begins or ends."""
    return tuple(sorted({0, 1, 4095, 4096, 4097, chunk_bytes - 1, chunk_bytes, chunk_bytes + 1}))


def hard_data_set(
    files: int, *, chunk_bytes: int, seed: int = 1, names: tuple[str, ...] = HARD_NAMES
) -> DataSet:
    """Every hard name and every edge size, filled up with small blobs to `files` in all."""
    sizes = random.Random(seed)
    named = [(f"names/{name}", sizes.randrange(SMALL_BYTES)) for name in names]
    edges = [(f"sizes/{size}.bin", size) for size in edge_sizes(chunk_bytes)]
    large = [("large/weights.bin", 9 * chunk_bytes + 4321), ("large/blocks.bin", 5 * chunk_bytes + 1)]
    special = [*named, *edges, *large]
    small = [
        (f"small/{number % 40}/{number}.bin", sizes.randrange(SMALL_BYTES))
        for number in range(files - len(special))
    ]
    blobs = [
        Blob(name, Content(size, seed + number), in_blocks=name.startswith("large/b") or number % 50 == 0)
        for number, (name, size) in enumerate([*special, *small])
    ]
    return DataSet(tuple(blobs), MARKERS)


MARKERS: Final = (
    Marker("small", {"hdi_isfolder": "true"}),
    Marker("empty-folder", {"hdi_isfolder": "true"}),
    Marker("large"),
    Marker("sizes/"),
    Marker("no/such/folder/"),
)


def plain_data_set(*sizes: int, seed: int = 7) -> DataSet:
    """Blobs of the given sizes, named b0, b1 and so on."""
    return DataSet(tuple(Blob(f"b{n}", Content(size, seed + n)) for n, size in enumerate(sizes)))
