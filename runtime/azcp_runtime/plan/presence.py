"""Which bytes move, and from where: pure, from what each node already holds."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

AZURE: Final = -1
"""Bytes that no node holds: read from the source."""

SKIP: Final = -2
"""Bytes that every node holds: nothing to do."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Bytes of a file of which some were left by an earlier run.

    Attributes:
        start: first byte.
        end: the byte after the last.
        origin: AZURE, SKIP, or the node that sends them.
    """

    start: int
    end: int
    origin: int


@dataclass(frozen=True, slots=True)
class Diff:
    """Per file of the listing: AZURE, SKIP, or the node that sends it.

    Attributes:
        origin: n integers.
        azure: how many files come from the source, in part at least.
        peer: how many come from nodes that hold them.
        skipped: how many every node holds.
        segments: by file, where a node holds a part of it: all of its bytes in order, instead of origin.
    """

    origin: array[int]
    azure: int
    peer: int
    skipped: int
    segments: Mapping[int, Sequence[Segment]] = field(default_factory=dict)

    def origin_of(self, file: int, offset: int) -> int:
        """Where a byte of a file comes from."""
        if file not in self.segments:
            return self.origin[file]
        segments = self.segments[file]
        return segments[bisect_right(segments, offset, key=lambda each: each.start) - 1].origin

    def source_bytes(self, sizes: Sequence[int]) -> int:
        """What leaves the account."""
        whole = sum(
            size
            for file, (size, where) in enumerate(zip(sizes, self.origin, strict=True))
            if where == AZURE and file not in self.segments
        )
        parts = (each for segments in self.segments.values() for each in segments if each.origin == AZURE)
        return whole + sum(each.end - each.start for each in parts)


def rotated(node: int, file: int, nodes: int) -> int:
    """How far a node is from a file's preferred holder, so that holders share the sending evenly."""
    return (node - file) % nodes


def classify(nearest: Sequence[int], holders: Sequence[int], nodes: int) -> Diff:
    """Sort files by origin.

    Args:
        nearest: per file, the smallest ``rotated`` distance among the nodes that may send it; nodes
            where none may.
        holders: per file, how many nodes hold it.
        nodes: the number of nodes.
    """
    pairs = enumerate(zip(nearest, holders, strict=True))
    return counted(array("l", (origin_from(file, *pair, nodes) for file, pair in pairs)), {})


def counted(origin: array[int], segments: Mapping[int, Sequence[Segment]]) -> Diff:
    """The diff with its counts."""
    azure, skipped = origin.count(AZURE), origin.count(SKIP)
    return Diff(origin, azure, len(origin) - azure - skipped, skipped, segments)


def origin_from(place: int, distance: int, holders: int, nodes: int) -> int:
    """Where the bytes at a place (of files, or of segments) come from; arguments as for ``classify``."""
    if holders == nodes:
        return SKIP
    return (place + distance) % nodes if distance < nodes else AZURE
