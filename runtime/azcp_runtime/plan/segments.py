"""Parts of files that nodes hold: the segments at whose ends anything changes, and where each comes from.

Nodes find the segments together by a bitmap of the places where a held range begins or ends, and then
count holders per segment: the traffic grows with the data set's unfinished files, not with the nodes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from azcp_runtime.plan.chunks import ALIGN
from azcp_runtime.plan.presence import AZURE, SKIP, Segment, origin_from
from azcp_runtime.plan.ranges import Range, on_grid

_WORD: Final = 64
_MOST_BITS: Final = 1 << 26
"""8 MiB of bitmap: 256 GiB of unfinished files at 4 KiB; more are told apart at a coarser grid."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Places in unfinished files at which a segment may end.

    Attributes:
        files: the unfinished files, in order.
        sizes: their bytes.
        step: bytes between two places.
        first: per file the bit of its first place, and one more at the end.
    """

    files: Sequence[int]
    sizes: Sequence[int]
    step: int
    first: Sequence[int]


def make_grid(files: Sequence[int], sizes: Sequence[int], most_bits: int = _MOST_BITS) -> Grid:
    """The finest grid whose bitmap stays within its bound."""
    step, total = ALIGN, sum(sizes)
    while total // step > most_bits:
        step *= 2
    first = [0]
    for size in sizes:
        first.append(first[-1] + -(-size // step))
    return Grid(files, sizes, step, first)


def boundaries(grid: Grid, held: Mapping[int, Sequence[Range]]) -> array[int]:
    """The bitmap of the places where one node's ranges begin or end."""
    words = array("Q", bytes(8 * -(-(grid.first[-1] + 1) // _WORD)))
    for file, size, first in zip(grid.files, grid.sizes, grid.first, strict=False):
        for ends in on_grid(held.get(file, ()), grid.step, size):
            for place in ends:
                if 0 < place < size:
                    bit = first + place // grid.step
                    words[bit // _WORD] |= 1 << bit % _WORD
    return words


def pieces_between(grid: Grid, words: Sequence[int]) -> list[tuple[int, int, int]]:
    """(file, start, end) of the bytes between neighbouring places of all nodes' bitmaps."""
    bits, pieces = _bits(words), []
    bit = next(bits, grid.first[-1])
    for file, size, first, after in zip(grid.files, grid.sizes, grid.first, grid.first[1:], strict=False):
        start = 0
        while bit < after:
            place = (bit - first) * grid.step
            pieces.append((file, start, place))
            start, bit = place, next(bits, grid.first[-1])
        if start < size:
            pieces.append((file, start, size))
    return pieces


def _bits(words: Sequence[int]) -> Iterator[int]:
    for index, word in enumerate(words):
        left = word
        while left:
            yield index * _WORD + (left & -left).bit_length() - 1
            left &= left - 1


def decided(
    pieces: Sequence[tuple[int, int, int]], nearest: Sequence[int], holders: Sequence[int], nodes: int
) -> dict[int, list[Segment]]:
    """By file its segments, neighbours of one origin joined."""
    result: dict[int, list[Segment]] = {}
    for place, ((file, start, end), distance, count) in enumerate(zip(pieces, nearest, holders, strict=True)):
        origin = origin_from(place, distance, count, nodes)
        segments = result.setdefault(file, [])
        if segments and segments[-1].origin == origin:
            segments[-1] = Segment(segments[-1].start, end, origin)
        else:
            segments.append(Segment(start, end, origin))
    return result


def origin_of_all(segments: Sequence[Segment]) -> int:
    """One origin for a file: the source if any byte comes from there, else a node, else SKIP."""
    origins = {each.origin for each in segments}
    if AZURE in origins:
        return AZURE
    return max(origins - {SKIP}, default=SKIP)
