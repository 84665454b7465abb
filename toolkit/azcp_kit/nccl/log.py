"""What a log of nccl-tests or rccl-tests says, whatever else is in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from azcp_kit.nccl.table import Row, read_rows, unlabelled

_RANK: Final = re.compile(r"#\s+Rank\s+(\d+)\s.*?\son\s+(\S+)\s+device\s")
_VERSION: Final = re.compile(r"\b([NR]CCL) version[ :]+(\d+\.\d+(?:\.\d+)?)")
_VIA: Final = re.compile(r" via ((?:NET|COLLNET)/\w+|P2P/\w+|SHM)(\S*)")
_NETWORK: Final = re.compile(r"NCCL INFO .*Using network (\S+)")
_BOUNDS: Final = re.compile(r"#?\s*Out of bounds values\s*:\s*(\d{1,20})\b", re.ASCII)
_AVERAGE: Final = re.compile(r"#?\s*Avg bus bandwidth\s*:\s*(\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?!\S)", re.ASCII)
_CHECKED: Final = re.compile(r"#? ?nThread \d.* validation: [1-9]", re.ASCII)
_TROUBLE: Final = re.compile(
    r"NCCL WARN|NCCL failure|CUDA failure|HIP failure|srun: error|slurmstepd: error|Test (?:timeout|failure)"
    r"|[Nn]o such file|cannot open shared object|Segmentation fault|Killed|CANCELLED"
)
_OWN: Final = re.compile(r"# azcp-kit nccl-test (.+)")
_MOST_TROUBLES: Final = 3
# Longer than any of theirs; the patterns take time that grows with the square of a line.
_LONGEST_LINE: Final = 4096


@dataclass(frozen=True, slots=True)
class Run:
    """One test.

    Args:
        rows: of its table, in the order of the log.
        ranks: that took part.
        hosts: that they ran on.
        worlds: how many tests there really were: each begins with a rank 0.
        library: NCCL or RCCL with its version; empty if the log does not tell.
        transports: of the channels, such as NET/IB/GDRDMA, sorted; empty without NCCL_DEBUG=INFO.
        is_checked: whether results were compared.
        failed_checks: what the test itself counts as out of bounds; None if it did not get there.
        average_gbps: bus bandwidth over all sizes as the test has it; None if it did not get there.
        troubles: the first lines that look like the reason of a failure.
        said: what the batch script wrote of the test, by name.
    """

    rows: tuple[Row, ...]
    ranks: int
    hosts: tuple[str, ...]
    worlds: int
    library: str
    transports: tuple[str, ...]
    is_checked: bool
    failed_checks: int | None
    average_gbps: float | None
    troubles: tuple[str, ...]
    said: dict[str, str]

    @property
    def largest(self) -> Row:
        """The row of the largest message; the slowest, where the test went over the sizes several times."""
        most = max(row.size_bytes for row in self.rows)
        return min((row for row in self.rows if row.size_bytes == most), key=lambda row: row.first.busbw_gbps)


def read_run(text: str) -> Run:
    """Read a log; one without a table has no rows."""
    lines = [unlabelled(line[:_LONGEST_LINE]) for line in text.splitlines()]
    ranks = [match for line in lines if (match := _RANK.match(line))]
    averages = _all(_AVERAGE, lines)
    bounds = _all(_BOUNDS, lines)
    versions = [f"{match[1]} {match[2]}" for line in lines if (match := _VERSION.search(line))]
    return Run(
        rows=tuple(read_rows(lines)),
        ranks=len(ranks),
        hosts=tuple(dict.fromkeys(match[2] for match in ranks)),
        worlds=sum(int(match[1]) == 0 for match in ranks),
        library=versions[0] if versions else "",
        transports=tuple(sorted(set(_transports(lines)))),
        is_checked=any(_CHECKED.match(line) for line in lines),
        failed_checks=sum(map(int, bounds)) if bounds else None,
        average_gbps=float(averages[-1]) if averages else None,
        troubles=tuple(line.strip() for line in lines if _TROUBLE.search(line))[:_MOST_TROUBLES],
        said=_said(lines),
    )


def _all(pattern: re.Pattern[str], lines: Sequence[str]) -> list[str]:
    return [match[1] for line in lines if (match := pattern.match(line))]


def _transports(lines: Sequence[str]) -> Iterator[str]:
    networks = set()
    for line in lines:
        if via := _VIA.search(line):
            yield via[1] + ("/GDRDMA" if "/GDRDMA" in via[2] else "")
        elif network := _NETWORK.search(line):
            networks.add(network[1])
    # Socket is worth knowing even where the lines of the channels were filtered out.
    yield from (f"NET/{network}" for network in networks if network == "Socket")


def _said(lines: Sequence[str]) -> dict[str, str]:
    found = next((match[1] for line in lines if (match := _OWN.match(line))), "")
    return dict(pair for word in found.split() if len(pair := tuple(word.split("=", 1))) == 2)  # noqa: PLR2004
