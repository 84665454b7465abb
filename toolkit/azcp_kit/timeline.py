"""Turns a run's report into what the timeline picture draws: rates over time for each node, on one scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from azcp_kit.axes import VIEW_HEIGHT, Tick, nice_ceiling, step_path, time_ticks
from azcp_kit.figures import ABSENT, Reading, Tile, around, ended, reading, reported, tiles
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
class TableRow:
    """The totals of one node, in the order of TABLE_HEAD."""

    cells: tuple[str, ...]
    slowest: bool


@dataclass(frozen=True)
class Timeline:
    """Everything on the page as text; the template only lays it out."""

    title: str
    source: str
    dest: str
    outcome: str
    around: str
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


KINDS: Final = ("download", "broadcast", "write")
LABELS: Final = ("Broadcast in", "Write")
TABLE_HEAD: Final = ("Node", "Host", "Ranks", "", "Received", "Written", "CPU", "Memory per rank", "")
"""Between its empty places; what was read and when a node was done are called after the run."""


def timeline(report: Report, most_nodes: int = MAX_DRAWN_NODES) -> Timeline:
    """The drawing of a run, with the bands of at most so many nodes."""
    rates, read = node_rates(report), reading(report)
    slowest = slowest_node(rates)
    tops = scales(rates)
    end_s = max((node.end_s for node in rates), default=0.0)
    drawn = sorted(rates, key=lambda node: -node.finish_s)[:most_nodes]
    words = _Words((read.label, *LABELS), is_stopped=not ended(report))
    last = max(rates, key=lambda node: node.finish_s, default=None)
    return Timeline(
        title=f"{read.label}, broadcast and write in one pass",
        source=report.source,
        dest=report.dest,
        outcome=report.outcome,
        around=around(report),
        facts=report.facts,
        tiles=tiles(report),
        keys=_keys(read, tops),
        ticks=time_ticks(end_s),
        together=_together(rates, tops, end_s, words) if len(rates) > 1 else None,
        bands=tuple(
            _band(node, tops, end_s, words, slowest=node.node == slowest)
            for node in sorted(drawn, key=lambda node: node.node)
        ),
        hidden=_left_out(report, len(rates) - len(drawn)),
        head=(*TABLE_HEAD[:3], read.head, *TABLE_HEAD[4:-1], words.last.capitalize()),
        table=tuple(
            TableRow(_cells(f"{node.node}", node.host, node.ranks, words.after(node)), node.node == slowest)
            for node in rates
        ),
        total=_cells("All", "", report.ranks, words.after(last) if last else ABSENT),
    )


@dataclass(frozen=True)
class _Words:
    """What the three rates are called, and how a node came to its end."""

    labels: tuple[str, ...]
    is_stopped: bool

    @property
    def last(self) -> str:
        """What is said before the time of the end."""
        return "stopped after" if self.is_stopped else "done after"

    def after(self, node: NodeRates) -> str:
        """When a node wrote its last byte, if it had any to write, or was stopped."""
        end_s = node.end_s if self.is_stopped else node.finish_s
        return format_seconds(end_s) if end_s else ABSENT

    def done(self, node: NodeRates) -> str:
        """The same in a sentence."""
        after = self.after(node)
        return "nothing to write" if after == ABSENT else f"{self.last} {after}"


def _keys(read: Reading, tops: tuple[float, ...]) -> tuple[Key, ...]:
    meanings = (read.origin, "from the other nodes", "to its own disk")
    return tuple(
        Key(kind, f"{meaning}, 0 to {format_rate(top)}")
        for kind, meaning, top in zip(KINDS, meanings, tops, strict=True)
    )


def _left_out(report: Report, hidden: int) -> str:
    """The nodes without a curve: those that said nothing, and those that were done first."""
    first = f"The {hidden:,} nodes that were done first have no curves of their own." if hidden else ""
    return " ".join(part for part in (reported(report), first) if part)


def slowest_node(rates: Sequence[NodeRates]) -> int | None:
    """The node that was done last; None where all that wrote were done together: no mark is needed."""
    wrote = [node for node in rates if node.finish_s]
    last = max(wrote, key=lambda node: node.finish_s, default=None)
    first_s = min((node.finish_s for node in wrote), default=0.0)
    return last.node if last and last.finish_s - first_s > TOGETHER * last.finish_s else None


def scales(rates: Sequence[NodeRates]) -> tuple[float, float, float]:
    """The full height of each kind of row, one for all nodes.

    A node downloads 1/N of what it receives and writes: on their scale its line would vanish as N grows.
    """
    download = max((value for node in rates for value in node.fetched), default=0.0)
    others = max((value for node in rates for value in (*node.received, *node.written)), default=0.0)
    return nice_ceiling(download), nice_ceiling(others), nice_ceiling(others)


def _band(node: NodeRates, tops: tuple[float, ...], end_s: float, words: _Words, *, slowest: bool) -> Band:
    series = (node.fetched, node.received, node.written)
    return Band(
        name=f"Node {node.node}",
        host=node.host,
        done=words.done(node),
        finish=f"{100 * node.finish_s / end_s if end_s else 0:.2f}",
        slowest=slowest,
        rows=tuple(
            _row(kind, label, values, top)
            for kind, label, values, top in zip(KINDS, words.labels, series, tops, strict=True)
        ),
    )


def _together(rates: Sequence[NodeRates], tops: tuple[float, ...], end_s: float, words: _Words) -> Band:
    """All nodes: what they read in total, and what a node receives and writes on average."""
    totals = [sum(values) for values in zip(*(node.fetched for node in rates), strict=True)]
    received, written = (
        [sum(values) / len(rates) for values in zip(*series, strict=True)]
        for series in ([node.received for node in rates], [node.written for node in rates])
    )
    last = max(rates, key=lambda node: node.finish_s)
    top = nice_ceiling(max(totals, default=0.0))
    return Band(
        name=f"All {len(rates):,} nodes",
        host=f"{words.labels[0].lower()} in total, 0 to {format_rate(top)}; broadcast and write per node",
        done=words.done(last),
        finish=f"{100 * last.finish_s / end_s if end_s else 0:.2f}",
        slowest=False,
        rows=tuple(
            _row(kind, label, values, full)
            for kind, label, values, full in zip(
                KINDS, words.labels, (totals, received, written), (top, *tops[1:]), strict=True
            )
        ),
    )


def _row(kind: str, label: str, values: Sequence[float], top: float) -> Row:
    peak = format_rate(max(values, default=0.0))
    return Row(kind, label, f"peak {peak}", tuple(value / top for value in values))


def _cells(name: str, host: str, ranks: Sequence[RankRecord], after: str) -> tuple[str, ...]:
    return (
        name,
        host,
        f"{len(ranks)}",
        format_size(sum(rank.fetched_bytes for rank in ranks)),
        format_size(sum(rank.received_bytes for rank in ranks)),
        format_size(sum(rank.written_bytes for rank in ranks)),
        format_seconds(sum(rank.cpu_seconds for rank in ranks)),
        format_size(max((rank.max_rss_bytes for rank in ranks), default=0)),
        after,
    )
