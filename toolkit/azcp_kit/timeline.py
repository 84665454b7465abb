"""Turns a run's report into what the timeline picture draws: rates over time for each node, on one scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from azcp_kit.axes import VIEW_HEIGHT, Tick, nice_ceiling, step_path, time_ticks
from azcp_kit.rates import NodeRates, node_rates
from azcp_kit.units import format_rate, format_seconds, format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from azcp_kit.report import RankRecord, Report

MAX_DRAWN_NODES: Final = 32
"""A page of more bands than these is not read; the table still has every node."""

TOGETHER: Final = 0.02
"""Ends that lie within this share of the pass are one end: samples are a tenth of a second apart."""


@dataclass(frozen=True)
class Row:
    """One rate over time, as shares of the height.

    As SVG path data it lies in a box of axes.VIEW_WIDTH x VIEW_HEIGHT.
    """

    kind: str
    label: str
    peak: str
    shares: tuple[float, ...]

    @property
    def line(self) -> str:
        """The rate as a line."""
        return step_path(self.shares)

    @property
    def area(self) -> str:
        """What is below the line."""
        return f"{self.line}V{VIEW_HEIGHT}H0Z" if self.shares else ""


@dataclass(frozen=True)
class Band:
    """The rows of one node; `finish` is its end as a percentage of the width."""

    name: str
    host: str
    done: str
    finish: str
    slowest: bool
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Key:
    """What a colour means, and the rate that fills the height of its rows."""

    kind: str
    text: str


@dataclass(frozen=True)
class Tile:
    """One figure of the whole run."""

    label: str
    value: str
    note: str


@dataclass(frozen=True)
class TableRow:
    """The totals of one node, in the order of TABLE_HEAD."""

    cells: tuple[str, ...]
    slowest: bool


@dataclass(frozen=True)
class Timeline:
    """Everything on the page as text; the template only lays it out."""

    source: str
    dest: str
    outcome: str
    facts: tuple[str, ...]
    tiles: tuple[Tile, ...]
    keys: tuple[Key, ...]
    ticks: tuple[Tick, ...]
    together: Band | None
    bands: tuple[Band, ...]
    hidden: str
    head: tuple[str, ...]
    table: tuple[TableRow, ...]
    total: tuple[str, ...]


ROWS: Final = (
    ("download", "Download", "from the source"),
    ("broadcast", "Broadcast in", "from the other nodes"),
    ("write", "Write", "to its own disk"),
)
TABLE_HEAD: Final = (
    "Node",
    "Host",
    "Ranks",
    "Downloaded",
    "Received",
    "Written",
    "CPU",
    "Memory per rank",
    "Done after",
)


def timeline(report: Report, most_nodes: int = MAX_DRAWN_NODES) -> Timeline:
    """The drawing of a run, with the bands of at most so many nodes."""
    rates = node_rates(report)
    slowest = slowest_node(rates)
    tops = scales(rates)
    end_s = max((node.end_s for node in rates), default=0.0)
    drawn = sorted(rates, key=lambda node: -node.finish_s)[:most_nodes]
    hidden = len(rates) - len(drawn)
    return Timeline(
        source=report.source,
        dest=report.dest,
        outcome=report.outcome,
        facts=report.facts,
        tiles=_tiles(report),
        keys=tuple(
            Key(kind, f"{meaning}, 0 to {format_rate(top)}")
            for (kind, _, meaning), top in zip(ROWS, tops, strict=True)
        ),
        ticks=time_ticks(end_s),
        together=_together(rates, tops, end_s) if len(rates) > 1 else None,
        bands=tuple(
            _band(node, tops, end_s, slowest=node.node == slowest)
            for node in sorted(drawn, key=lambda node: node.node)
        ),
        hidden=f"The {hidden:,} nodes that were done first have no curves of their own." if hidden else "",
        head=TABLE_HEAD,
        table=tuple(
            TableRow(_cells(f"{node.node}", node.host, node.ranks, node.finish_s), node.node == slowest)
            for node in rates
        ),
        total=_cells("All", "", report.ranks, max((node.finish_s for node in rates), default=0.0)),
    )


def slowest_node(rates: Sequence[NodeRates]) -> int | None:
    """The node that was done last; None where all were done together and the mark would mean nothing."""
    last = max(rates, key=lambda node: node.finish_s, default=None)
    first_s = min((node.finish_s for node in rates), default=0.0)
    return last.node if last and last.finish_s - first_s > TOGETHER * last.finish_s else None


def scales(rates: Sequence[NodeRates]) -> tuple[float, float, float]:
    """The full height of each kind of row, one for all nodes.

    A node downloads 1/N of what it receives and writes: on their scale its line would vanish as N grows.
    """
    download = max((value for node in rates for value in node.fetched), default=0.0)
    others = max((value for node in rates for value in (*node.received, *node.written)), default=0.0)
    return nice_ceiling(download), nice_ceiling(others), nice_ceiling(others)


def _band(node: NodeRates, tops: tuple[float, ...], end_s: float, *, slowest: bool) -> Band:
    series = (node.fetched, node.received, node.written)
    return Band(
        name=f"Node {node.node}",
        host=node.host,
        done=f"done after {format_seconds(node.finish_s)}",
        finish=f"{100 * node.finish_s / end_s if end_s else 0:.2f}",
        slowest=slowest,
        rows=tuple(
            _row(kind, label, values, top)
            for (kind, label, _), values, top in zip(ROWS, series, tops, strict=True)
        ),
    )


def _together(rates: Sequence[NodeRates], tops: tuple[float, ...], end_s: float) -> Band:
    """All nodes: what they download in total, and what a node receives and writes on average."""
    totals = [sum(values) for values in zip(*(node.fetched for node in rates), strict=True)]
    received, written = (
        [sum(values) / len(rates) for values in zip(*series, strict=True)]
        for series in ([node.received for node in rates], [node.written for node in rates])
    )
    last_s = max(node.finish_s for node in rates)
    return Band(
        name=f"All {len(rates):,} nodes",
        host="download in total, broadcast and write per node",
        done=f"done after {format_seconds(last_s)}",
        finish=f"{100 * last_s / end_s if end_s else 0:.2f}",
        slowest=False,
        rows=(
            _row("download", "Download", totals, nice_ceiling(max(totals, default=0.0))),
            _row("broadcast", "Broadcast in", received, tops[1]),
            _row("write", "Write", written, tops[2]),
        ),
    )


def _row(kind: str, label: str, values: Sequence[float], top: float) -> Row:
    peak = format_rate(max(values, default=0.0))
    return Row(kind, label, f"peak {peak}", tuple(value / top for value in values))


def _tiles(report: Report) -> tuple[Tile, ...]:
    def spread(stage: str) -> str:
        seconds, size_bytes = report.stage_seconds.get(stage, 0.0), report.stage_bytes.get(stage, 0)
        return format_rate(size_bytes / seconds if seconds > 0 else 0.0)

    total_s = report.stage_seconds.get("total", 0.0)
    retries = sum(report.retries.values())
    return (
        Tile("Data set", format_size(report.size_bytes), f"{report.files:,} files"),
        Tile("Nodes", f"{report.nodes:,}", f"{len(report.ranks):,} ranks"),
        Tile("Total time", format_seconds(total_s), f"{retries:,} {'retry' if retries == 1 else 'retries'}"),
        Tile("Download", spread("download"), "all nodes together"),
        Tile("Broadcast", spread("bcast"), "into each node"),
    )


def _cells(name: str, host: str, ranks: Sequence[RankRecord], finish_s: float) -> tuple[str, ...]:
    return (
        name,
        host,
        f"{len(ranks)}",
        format_size(sum(rank.fetched_bytes for rank in ranks)),
        format_size(sum(rank.received_bytes for rank in ranks)),
        format_size(sum(rank.written_bytes for rank in ranks)),
        format_seconds(sum(rank.cpu_seconds for rank in ranks)),
        format_size(max((rank.max_rss_bytes for rank in ranks), default=0)),
        format_seconds(finish_s),
    )
