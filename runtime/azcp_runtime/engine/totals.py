"""What each rank did in the pass, as rank 0 gathers it for the summary and the report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from azcp_runtime.mpi.ranks import Ranks
from azcp_runtime.summary import Span

RETRY_CLASSES: Final = ("503", "429", "5xx", "transport")
"""In the order of azure.retry.Retries.CLASSES, which cannot be imported without the SDK."""


@dataclass(frozen=True, slots=True)
class RankTotals:
    """One rank's figures; times are seconds since the pass began, which all ranks did together.

    Attributes:
        rank: its number in the plan.
        node: its node's index.
        rail: its index on the node.
        host: its node's name.
        fetched_bytes: read from the source or the node's own copy.
        fetch_span: when the first read began and the last one ended.
        received_bytes: received over the fabric.
        bcast_span: when the first broadcast was posted and the last one ended.
        written_bytes: written to the destination.
        cpu_seconds: of the whole process.
        cpu_fetch_seconds: of the fetcher threads.
        cpu_bcast_seconds: of the main thread in the pass, which alone calls MPI.
        cpu_write_seconds: of the writer threads and the one that commits.
        max_rss_bytes: the largest resident set.
        retries: in the order of Retries.CLASSES.
        samples: cumulative bytes over time.
    """

    rank: int
    node: int
    rail: int
    host: str
    fetched_bytes: int
    fetch_span: tuple[float, float]
    received_bytes: int
    bcast_span: tuple[float, float]
    written_bytes: int
    cpu_seconds: float
    cpu_fetch_seconds: float
    cpu_bcast_seconds: float
    cpu_write_seconds: float
    max_rss_bytes: int
    retries: list[int]
    samples: dict[str, list[float]]


def gather_totals(ranks: Ranks, mine: RankTotals) -> list[RankTotals]:
    """All ranks' totals on rank 0, by rank; empty elsewhere."""
    rows = ranks.gather(json.dumps(asdict(mine)).encode())
    return sorted((RankTotals(**json.loads(row)) for row in rows), key=lambda totals: totals.rank)


def retries_by_class(totals: Sequence[RankTotals]) -> dict[str, int]:
    """Retries of these ranks together."""
    counts = [sum(column) for column in zip(*(row.retries for row in totals), strict=True)]
    return dict(zip(RETRY_CLASSES, counts, strict=False))


def span_of(totals: list[RankTotals], moved: int, *, fetch: bool) -> Span:
    """Bytes moved from the first rank's beginning to the last one's end."""
    spans = [t.fetch_span if fetch else t.bcast_span for t in totals]
    active = [(began, ended) for began, ended in spans if ended > began]
    if not active:
        return Span(moved, 0.0)
    return Span(moved, max(ended for _, ended in active) - min(began for began, _ in active))
