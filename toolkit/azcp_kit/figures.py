"""The words and figures of a run: what was read from where, how far it came, and its tiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from azcp_kit.units import format_rate, format_seconds, format_size

if TYPE_CHECKING:
    from azcp_kit.report import Report

ABSENT: Final = "-"
TOLD_S: Final = 0.005
"""A stage that took less would be told as 0.00 s."""


@dataclass(frozen=True)
class Tile:
    """One figure of the whole run."""

    label: str
    value: str
    note: str


@dataclass(frozen=True)
class Reading:
    """What the bytes are called that a node did not get from another; what is read here is no download."""

    label: str
    origin: str
    head: str


def reading(report: Report) -> Reading:
    """How to call the bytes that the nodes read themselves."""
    downloaded = report.stage_bytes.get("download", 0)
    fetched = sum(rank.fetched_bytes for rank in report.ranks)
    if not report.peer_files and not (ended(report) and fetched > downloaded):
        return Reading("Download", "from the source", "Downloaded")
    is_mixed = report.source_files or downloaded
    return Reading("Read", "from the source or its own disk" if is_mixed else "from its own disk", "Read")


def ended(report: Report) -> bool:
    """Whether the pass came to its end, where every rank tells its figures."""
    return "download" in report.stage_seconds


def reported(report: Report) -> str:
    """Which nodes have told what they did, where not all have; else nothing."""
    if ended(report):
        return ""
    nodes = sorted({rank.node for rank in report.ranks})
    names = ", ".join(f"{node}" for node in nodes)
    if len(nodes) < report.nodes:
        said = f"only node {names} reported" if nodes else "none reported"
        return f"Of {_counted(report.nodes, 'node', 'nodes')} {said}."
    ranks = report.nodes * report.rails
    return f"Of {ranks:,} ranks only {len(report.ranks):,} reported." if len(report.ranks) < ranks else ""


def around(report: Report) -> str:
    """How long the stages took that lie outside of the time axis."""
    before = _times(report, ("list", "diff"))
    after = _times(report, ("verify", "filelist"))
    parts = [f"before it {before}" if before else "", f"after it {after}" if after else ""]
    told = "; ".join(part for part in parts if part)
    return f"0 s is where the pass begins; {told}" if told else ""


def _times(report: Report, stages: tuple[str, ...]) -> str:
    times = {name: report.stage_seconds.get(name, 0.0) for name in stages}
    return ", ".join(
        f"{name} {format_seconds(seconds)}" for name, seconds in times.items() if seconds >= TOLD_S
    )


def tiles(report: Report) -> tuple[Tile, ...]:
    """The figures of the whole run; of one that was stopped those so far."""
    retries = _counted(sum(report.retries.values()), "retry", "retries")
    total_s = report.stage_seconds.get("total")
    total = Tile("Total time", format_seconds(total_s), retries) if total_s is not None else None
    ranks = _counted(len(report.ranks), "rank", "ranks")
    return (
        Tile("Data set", format_size(report.size_bytes), _counted(report.files, "file", "files")),
        Tile("Nodes", f"{report.nodes:,}", ranks if ended(report) else f"{ranks} reported"),
        total or Tile("Total time", ABSENT, f"ended early, {retries}"),
        *(_rates(report) if ended(report) else _so_far(report)),
    )


def _rates(report: Report) -> tuple[Tile, Tile]:
    """A rate of nothing is not 0 b/s: it was not needed."""
    bytes_of, seconds_of = report.stage_bytes, report.stage_seconds

    def tile(label: str, stage: str, note: str, none: str) -> Tile:
        size_bytes, seconds = bytes_of.get(stage, 0), seconds_of.get(stage, 0.0)
        if size_bytes and seconds > 0:
            return Tile(label, format_rate(size_bytes / seconds), note)
        return Tile(label, ABSENT, none)

    is_from_disk = reading(report).label == "Read"
    here = "all was read from nodes' disks" if is_from_disk else "nothing was missing"
    source = "from the source alone" if is_from_disk else "all nodes together"
    alone = "one node" if report.nodes == 1 else "nothing was missing"
    return tile("Download", "download", source, here), tile("Broadcast", "bcast", "into each node", alone)


def _so_far(report: Report) -> tuple[Tile, Tile]:
    ranks = report.ranks
    nodes = len({rank.node for rank in ranks})
    where = f"so far, on {nodes:,} of {_counted(report.nodes, 'node', 'nodes')}" if ranks else "none reported"
    fetched = sum(rank.fetched_bytes for rank in ranks)
    received = sum(rank.received_bytes for rank in ranks)
    return (
        Tile(reading(report).head, format_size(fetched) if ranks else ABSENT, where),
        Tile("Received", format_size(received) if ranks else ABSENT, where),
    )


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"
