"""Sets of byte ranges of one file, as sorted lists of (first byte, byte after the last) that do not touch."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

Range = tuple[int, int]


def merged(ranges: Iterable[Range]) -> list[Range]:
    """The same bytes in as few ranges as can be, in order; empty ones are left out."""
    result: list[Range] = []
    for start, end in sorted(ranges):
        if start >= end:
            continue
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((start, end))
    return result


def covers(ranges: Sequence[Range], start: int, end: int) -> bool:
    """Whether one of the merged ranges holds every byte from start to end."""
    place = bisect_right(ranges, (start, 1 << 64)) - 1
    return place >= 0 and ranges[place][0] <= start and end <= ranges[place][1]


def total(ranges: Iterable[Range]) -> int:
    """Bytes in ranges that do not overlap."""
    return sum(end - start for start, end in ranges)


def on_grid(ranges: Iterable[Range], grid: int, size: int) -> Iterator[Range]:
    """The parts of ranges that begin and end at multiples of grid, or at the end of the file."""
    for start, end in ranges:
        first = -(-start // grid) * grid
        last = size if end >= size else end // grid * grid
        if first < last:
            yield first, last
