"""The JSON that azcp-distribute --report writes, read into values that the rest can trust."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from azcp_runtime.contract import REPORT_SCHEMA, UsageError

from azcp_kit.shown import shown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_MOST: Final = 1e18
"""Bytes or seconds; an exabyte was never moved."""

_LONGEST: Final = 1000
_LONGEST_HOST: Final = 253
"""Characters of a DNS name."""

_DIGITS: Final = 3
"""Of seconds, as a run writes them: nothing is divided by less."""


@dataclass(frozen=True)
class Samples:
    """Cumulative bytes at each time; times are seconds since the pass began, never falling."""

    seconds: tuple[float, ...]
    fetched: tuple[float, ...]
    received: tuple[float, ...]
    written: tuple[float, ...]


@dataclass(frozen=True)
class RankRecord:
    """What one rank did."""

    rank: int
    node: int
    host: str
    fetched_bytes: int
    received_bytes: int
    written_bytes: int
    cpu_seconds: float
    max_rss_bytes: int
    samples: Samples


@dataclass(frozen=True)
class Report:
    """A run: where from and to, how long the stages took, and what each rank did.

    `stage_seconds` and `stage_bytes` hold the stages that took place; `retries` counts by class; `outcome`
    says why the run ended early, and is empty where it did not; `facts` name the transport and the versions.
    `source_files` come from the source, in part at least, and `peer_files` from nodes that hold them.
    """

    source: str
    dest: str
    outcome: str
    nodes: int
    files: int
    size_bytes: int
    facts: tuple[str, ...]
    stage_seconds: dict[str, float]
    stage_bytes: dict[str, int]
    ranks: tuple[RankRecord, ...]
    retries: dict[str, int]
    rails: int = 1
    source_files: int = 0
    peer_files: int = 0


def read_report(path: Path) -> Report:
    """The report in a file.

    Raises:
        UsageError: it cannot be read, or it is no report of this schema.
    """
    try:
        return parse_report(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UsageError(f"{path} cannot be read", cause=error.strerror or "") from error
    except ValueError as error:
        raise UsageError(f"{path} is not JSON", cause=shown(str(error))) from error
    except RecursionError as error:
        raise UsageError(f"{path} is no report", cause="it is nested too deeply") from error


def parse_report(data: object) -> Report:
    """The report in what json.loads gives.

    Raises:
        UsageError: a part is missing or of another kind, or the schema is another.
    """
    if not isinstance(data, dict) or data.get("schema") != REPORT_SCHEMA:
        raise UsageError("this is no report of schema 1", remedy="give the file that --report wrote")
    try:
        return _report(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        cause = shown(f"{type(error).__name__}: {error}")
        raise UsageError("the report is incomplete", cause=cause, remedy="run again with --report") from error


def _report(data: Mapping[str, object]) -> Report:
    stages = _mapping(data["stages"])
    spans = {name: _mapping(stage) for name, stage in stages.items()}
    outcome = _mapping(data["outcome"])
    listed = spans.get("list", {"files": 0, "bytes": 0})  # a run may end before it
    missing = spans.get("diff", {"azure": 0, "peer": 0})
    return Report(
        source=_text(data["source"]),
        dest=_text(data["dest"]),
        outcome="" if outcome["status"] == "done" else _text(f"{outcome['status']}: {outcome['reason']}"),
        nodes=_whole(data["nodes"]),
        files=_whole(listed["files"]),
        size_bytes=_whole(listed["bytes"]),
        facts=_facts(data),
        stage_seconds={name: _number(stage["seconds"]) for name, stage in spans.items()},
        stage_bytes={name: _whole(stage["bytes"]) for name, stage in spans.items() if "bytes" in stage},
        ranks=tuple(_rank(_mapping(rank)) for rank in _list(data["ranks"])),
        retries={name: _whole(count) for name, count in _mapping(data["retries"]).items()},
        rails=_whole(data["rails"]),
        source_files=_whole(missing["azure"]),
        peer_files=_whole(missing["peer"]),
    )


def _facts(data: Mapping[str, object]) -> tuple[str, ...]:
    versions, transport = _mapping(data["versions"]), _mapping(data["transport"])
    carried = ", ".join(_text(f"{name} {value}") for name, value in transport.items() if value)
    named = (_text(f"{name} {version}") for name, version in versions.items() if version)
    return (*named, carried or "one node")


def _rank(data: Mapping[str, object]) -> RankRecord:
    return RankRecord(
        rank=_whole(data["rank"]),
        node=_whole(data["node"]),
        host=_text(data["host"], _LONGEST_HOST),
        fetched_bytes=_whole(data["fetched_bytes"]),
        received_bytes=_whole(data["received_bytes"]),
        written_bytes=_whole(data["written_bytes"]),
        cpu_seconds=_number(data["cpu_seconds"]),
        max_rss_bytes=_whole(data["max_rss_bytes"]),
        samples=_samples(_mapping(data["samples"])),
    )


def _samples(data: Mapping[str, object]) -> Samples:
    columns = {name: tuple(map(_number, _list(column))) for name, column in data.items()}
    seconds = tuple(round(moment, _DIGITS) for moment in columns["seconds"])
    samples = Samples(seconds, columns["fetched"], columns["received"], columns["written"])
    if len({len(column) for column in columns.values()}) != 1:
        raise ValueError("the columns of samples differ in length")
    if any(later < earlier for earlier, later in zip(samples.seconds, samples.seconds[1:], strict=False)):
        raise ValueError("the times of samples fall")
    if any(moment < 0 for moment in seconds[:1]):
        raise ValueError("samples begin before the pass")
    return samples


def _mapping(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is no object")
    return {shown(name): member for name, member in value.items()}


def _text(value: object, longest: int = _LONGEST) -> str:
    """A text that can drive neither a terminal nor a page, and no longer than one shows."""
    return shown(str(value), longest)


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no array")
    return value


def _number(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not -_MOST <= value <= _MOST:
        raise TypeError(f"{value!r:.40} is no number that a run can have")
    return float(value)


def _whole(value: object) -> int:
    return int(_number(value))
