"""Which files move, and from where: pure, from what each node already holds."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

AZURE: Final = -1
"""A file that no node holds: read from the source."""

SKIP: Final = -2
"""A file that every node holds: nothing to do."""


@dataclass(frozen=True, slots=True)
class Diff:
    """Per file of the listing: AZURE, SKIP, or the node that sends it.

    Attributes:
        origin: n integers.
        azure: how many files come from the source.
        peer: how many come from a node that holds them.
        skipped: how many every node holds.
    """

    origin: array[int]
    azure: int
    peer: int
    skipped: int


def rotated(node: int, file: int, nodes: int) -> int:
    """How far a node is from a file's preferred holder, so that holders share the sending evenly."""
    return (node - file) % nodes


def classify(nearest: Sequence[int], holders: Sequence[int], nodes: int) -> Diff:
    """Sort files by origin.

    Args:
        nearest: per file, the smallest ``rotated`` distance among the nodes that hold it; nodes
            where none does.
        holders: per file, how many nodes hold it.
        nodes: the number of nodes.
    """
    origin = array("l")
    azure = peer = skipped = 0
    for file, (distance, count) in enumerate(zip(nearest, holders, strict=True)):
        if count == nodes:
            origin.append(SKIP)
            skipped += 1
        elif count:
            origin.append((file + distance) % nodes)
            peer += 1
        else:
            origin.append(AZURE)
            azure += 1
    return Diff(origin, azure, peer, skipped)
