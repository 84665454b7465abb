"""What the nodes found, brought to rank 0 and put together where it is the same."""

from __future__ import annotations

import json
import statistics
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from azcp_runtime.doctor.check import Amount, Check, Status
from azcp_runtime.mpi.ranks import Ranks

_SLOW_SHARE: Final = 0.5
"""A node below this share of the median holds all others back."""

_FEWEST: Final = 3
"""Of two nodes nobody can say which one is the odd one."""


@dataclass(frozen=True, slots=True)
class NodeReport:
    """One node and its checks."""

    node: int
    host: str
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes that found the same, and per check the least and the greatest of their amounts."""

    hosts: tuple[str, ...]
    checks: tuple[Check, ...]
    spans: tuple[tuple[Amount, Amount] | None, ...]


def gather_reports(ranks: Ranks, checks: Sequence[Check] | None) -> list[NodeReport]:
    """The reports of all nodes on rank 0, by node; an empty list elsewhere.

    Args:
        ranks: the world.
        checks: this node's; None on every rank of it but one.
    """
    seat = ranks.seat
    rows = ranks.gather(b"" if checks is None else encode(NodeReport(seat.node, seat.host, tuple(checks))))
    return sorted((decode(row) for row in rows if row), key=lambda report: report.node)


def encode(report: NodeReport) -> bytes:
    """A report as JSON."""
    return json.dumps(as_json(report)).encode()


def decode(data: bytes) -> NodeReport:
    """The report of `encode`."""
    raw = json.loads(data)
    return NodeReport(raw["node"], raw["host"], tuple(_check(each) for each in raw["checks"]))


def as_json(report: NodeReport) -> dict[str, object]:
    """A report as JSON's own types; `value` and `unit` are there where something was measured."""
    return {"node": report.node, "host": report.host, "checks": [_as_json(check) for check in report.checks]}


def worst(reports: Iterable[NodeReport]) -> Status:
    """The worst status of all."""
    order = list(Status)
    found = (check.status for report in reports for check in report.checks)
    return max(found, key=order.index, default=Status.OK)


def mark_slow(reports: Sequence[NodeReport]) -> list[NodeReport]:
    """The reports, with a warning on each node that is much slower than most in the same check."""
    speeds: dict[str, list[int]] = {}
    for report in reports:
        for check in report.checks:
            if check.amount and check.amount.unit == "bytes/s":
                speeds.setdefault(check.name, []).append(check.amount.value)
    floors = {
        name: statistics.median(values) * _SLOW_SHARE
        for name, values in speeds.items()
        if len(values) >= _FEWEST
    }
    return [
        replace(report, checks=tuple(_judged(check, floors) for check in report.checks)) for report in reports
    ]


def group(reports: Sequence[NodeReport]) -> list[Group]:
    """Nodes with equal checks together, in the order of their first node; amounts may differ."""
    members: dict[tuple[Check, ...], list[NodeReport]] = {}
    for report in reports:
        key = tuple(map(_kind, report.checks))
        members.setdefault(key, []).append(report)
    return [
        Group(
            tuple(report.host for report in same),
            key,
            tuple(_span(column) for column in zip(*(report.checks for report in same), strict=True)),
        )
        for key, same in members.items()
    ]


def parted(reports: Sequence[NodeReport]) -> list[Group]:
    """The groups of a table: what all nodes found first, then only that in which some differ."""
    groups = group(reports)
    common = {
        kind for kind in (groups[0].checks if groups else ()) if all(kind in each.checks for each in groups)
    }
    if len(groups) == 1 or not common:
        return groups
    alike = [_with(report, common, is_in=True) for report in reports]
    apart = [_with(report, common, is_in=False) for report in reports]
    return group(alike) + group([report for report in apart if report.checks])


def _with(report: NodeReport, kinds: Container[Check], *, is_in: bool) -> NodeReport:
    return replace(report, checks=tuple(check for check in report.checks if (_kind(check) in kinds) is is_in))


def _kind(check: Check) -> Check:
    """The check whatever was measured."""
    return replace(check, amount=Amount(0, check.amount.unit) if check.amount else None)


def _judged(check: Check, floors: dict[str, float]) -> Check:
    floor = floors.get(check.name, 0.0)
    if check.status is not Status.OK or not check.amount or check.amount.value >= floor:
        return check
    found = f"less than half of what most nodes have: {check.found}".rstrip(": ")
    return replace(
        check, status=Status.WARN, found=found, remedy="drain this node, or look at what it has else"
    )


def _span(column: Sequence[Check]) -> tuple[Amount, Amount] | None:
    amounts = sorted((check.amount for check in column if check.amount), key=lambda amount: amount.value)
    return (amounts[0], amounts[-1]) if amounts else None


def _as_json(check: Check) -> dict[str, object]:
    amount = {"value": check.amount.value, "unit": check.amount.unit} if check.amount else {}
    return {
        "name": check.name,
        "status": check.status.value,
        "found": check.found,
        "remedy": check.remedy,
        **amount,
    }


def _check(raw: dict[str, str]) -> Check:
    unit = raw.get("unit")
    amount = Amount(int(raw["value"]), "bytes" if unit == "bytes" else "bytes/s") if unit else None
    return Check(str(raw["name"]), Status(raw["status"]), str(raw["found"]), str(raw["remedy"]), amount)
