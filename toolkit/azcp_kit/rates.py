"""Rates over time of each node, from the cumulative bytes that its ranks noted."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from azcp_kit.report import RankRecord, Report

SPANS: Final = 120
"""Spans of time on the axis: with more, single chunks show and hide the rates."""


@dataclass(frozen=True)
class NodeRates:
    """Mean bytes per second in equal spans from 0 to `end_s`, the same spans for every node.

    `finish_s` is when the node's last byte was written.
    """

    node: int
    host: str
    ranks: tuple[RankRecord, ...]
    fetched: tuple[float, ...]
    received: tuple[float, ...]
    written: tuple[float, ...]
    finish_s: float
    end_s: float


def node_rates(report: Report) -> tuple[NodeRates, ...]:
    """The rates of each node, in the order of nodes."""
    samples = [rank.samples for rank in report.ranks]
    end_s = max((times.seconds[-1] for times in samples if times.seconds), default=0.0)
    edges = [end_s * index / SPANS for index in range(SPANS + 1)] if end_s > 0 else []
    by_node = groupby(sorted(report.ranks, key=_node_and_rank), key=lambda rank: rank.node)
    return tuple(_rates(node, tuple(ranks), edges, end_s) for node, ranks in by_node)


def _node_and_rank(rank: RankRecord) -> tuple[int, int]:
    return rank.node, rank.rank


def _rates(node: int, ranks: tuple[RankRecord, ...], edges: Sequence[float], end_s: float) -> NodeRates:
    def total(columns: list[tuple[float, ...]]) -> tuple[float, ...]:
        times = [rank.samples.seconds for rank in ranks]
        return sum_of_rates(list(zip(times, columns, strict=True)), edges)

    return NodeRates(
        node=node,
        host=ranks[0].host,
        ranks=ranks,
        fetched=total([rank.samples.fetched for rank in ranks]),
        received=total([rank.samples.received for rank in ranks]),
        written=total([rank.samples.written for rank in ranks]),
        finish_s=max(finish(rank.samples.seconds, rank.samples.written) for rank in ranks),
        end_s=end_s,
    )


def sum_of_rates(
    curves: Sequence[tuple[Sequence[float], Sequence[float]]], edges: Sequence[float]
) -> tuple[float, ...]:
    """The summed mean rate of cumulative curves (times, bytes) in each span between two edges."""
    at_edges = [sum(value_at(times, values, edge) for times, values in curves) for edge in edges]
    return tuple(
        max(0.0, after - before) / (end - start)
        for (start, end), (before, after) in zip(pairwise(edges), pairwise(at_edges), strict=True)
    )


def value_at(times: Sequence[float], values: Sequence[float], time: float) -> float:
    """A cumulative curve's value at a time, on the straight line between its samples, from 0 at time 0."""
    after = bisect_right(times, time)
    if after == len(times):
        return values[-1] if values else 0.0
    start, low = (times[after - 1], values[after - 1]) if after else (0.0, 0.0)
    span = times[after] - start
    return low + (values[after] - low) * (time - start) / span if span > 0 else values[after]


def finish(times: Sequence[float], values: Sequence[float]) -> float:
    """The first time at which a cumulative curve has its last value; 0 if it has none, or nothing moved."""
    if not values or not values[-1]:
        return 0.0
    return next(time for time, value in zip(times, values, strict=True) if value >= values[-1])
