"""The table of nccl-tests and rccl-tests: its columns by their header, its rows through whatever cuts them.

Rank 0 prints a row in three pieces (common.cu, util.cu: preamble, out-of-place, in-place), and NCCL writes to
the same stream while it does so: with NCCL_DEBUG=INFO the first row of a run is nearly always in pieces.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

_TIMES: Final = frozenset({"time", "cputime"})
_WRONG: Final = "#wrong"
# How srun --label and mpirun --tag-output begin a line.
_LABEL: Final = re.compile(r"^\s*(?:\d+:|\[\d+(?:,\d+)*\](?:<\w+>)?:?)(?=\s|#|$) ?")
# HOST:PID:TID, perhaps with the time before it and right behind a number of the row.
_NOISE: Final = re.compile(
    r"(?:\[[\d :.-]+\] )?(?<!/)[A-Za-z][\w.-]*:\d+:\d+ .*NCCL (?:INFO|WARN|TRACE|CALL).*"
)
_NUMBER: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|inf|-?nan|N/A)\*?", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class Measured:
    """One way of a row.

    Args:
        busbw_gbps: bus bandwidth, 10^9 bytes per second; 0 where the test has no number.
        wrong: elements that were wrong; None where they were not compared.
    """

    busbw_gbps: float
    wrong: int | None


@dataclass(frozen=True, slots=True)
class Row:
    """One message size; a way that was not run is None."""

    size_bytes: int
    out_of_place: Measured | None
    in_place: Measured | None

    @property
    def first(self) -> Measured:
        """The way that published figures are of: out of place, where that was run."""
        return self.ways[0]

    @property
    def ways(self) -> tuple[Measured, ...]:
        """Those that were run, at least one."""
        return tuple(way for way in (self.out_of_place, self.in_place) if way)


@dataclass(frozen=True, slots=True)
class _Layout:
    """Which columns there are: the names from the first time on, and how a row begins."""

    columns: tuple[str, ...]
    is_in_place_only: bool
    preamble: re.Pattern[str]


def unlabelled(line: str) -> str:
    """The line without the rank that a launcher put in front."""
    return _LABEL.sub("", line, count=1)


def read_rows(lines: Iterable[str]) -> Iterator[Row]:
    """The rows of a log, whose lines have no label; those that never became whole are left out."""
    layout: _Layout | None = None
    is_in_place_only = False
    size_bytes, values = 0, []
    for line in lines:
        if line.startswith("#"):
            is_in_place_only = _ways(line, is_in_place_only)
            layout = _layout(line, is_in_place_only) or layout
            continue
        if layout is None:
            continue
        content = _NOISE.sub("", line)
        if begun := layout.preamble.match(content):
            size_bytes, values = int(begun["size"]), _numbers(content[begun.end() :])
        elif size_bytes:
            values += _rest(content)
        if size_bytes and len(values) >= len(layout.columns):
            yield _row(size_bytes, layout, values)
            size_bytes, values = 0, []


def _ways(line: str, before: bool) -> bool:
    """Whether the ways are in place alone, which the line above the header tells."""
    return "out-of-place" not in line if "in-place" in line else before


def _layout(line: str, is_in_place_only: bool) -> _Layout | None:
    names = line.lstrip("#").split()
    first = next((place for place, name in enumerate(names) if name in _TIMES), 0)
    if "busbw" not in names or not first:
        return None
    columns = tuple(name for name in names[first:] if name != "timestamp")
    # In 2.12 and earlier each collective had columns of its own, all-reduce no root.
    root = r"(?:\s+(?:-1|\d+)(?![\d.]))?" if "root" in names else ""
    start = rf"\s*(?P<size>\d{{1,20}})\s+\d+\s+[a-z]\w*(?:\s+[a-z]\w*)?{root}(?=\s|$|\D)"
    return _Layout(columns, is_in_place_only, re.compile(start, re.ASCII))


def _numbers(text: str) -> list[str]:
    """The leading words that can be measurements."""
    found = []
    for word in text.split():
        if not _NUMBER.fullmatch(word):
            break
        found.append(word)
    return found


def _rest(content: str) -> list[str]:
    """What a later line adds to a row: all of it, or nothing where anything else is in it."""
    words = content.split()
    return words if all(_NUMBER.fullmatch(word) for word in words) else []


def _row(size_bytes: int, layout: _Layout, values: list[str]) -> Row:
    starts = [place for place, name in enumerate(layout.columns) if name in _TIMES]
    ends = [*starts[1:], len(layout.columns)]
    ways = [
        _measured(dict(zip(layout.columns[start:end], values[start:end], strict=True)))
        for start, end in zip(starts, ends, strict=True)
    ]
    if len(ways) > 1:
        return Row(size_bytes, ways[0], ways[1])
    return Row(size_bytes, None, ways[0]) if layout.is_in_place_only else Row(size_bytes, ways[0], None)


def _measured(way: dict[str, str]) -> Measured:
    # 2.12 and earlier have a largest difference there, which says nothing without its type's tolerance.
    wrong = _number(way.get(_WRONG, "N/A"))
    return Measured(_number(way["busbw"]) or 0.0, None if wrong is None else int(wrong))


def _number(text: str) -> float | None:
    if text.startswith("N/A"):
        return None
    value = float(text.rstrip("*"))
    return value if math.isfinite(value) else None
