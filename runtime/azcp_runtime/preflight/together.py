"""The quick look on every node, said once for all: warnings in a line each, failures as the run's end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from azcp_runtime.contract import PreflightError
from azcp_runtime.doctor.check import Check, Status, amount_text, few
from azcp_runtime.doctor.gather import NodeReport, gather_reports
from azcp_runtime.mpi.ranks import Ranks
from azcp_runtime.preflight.asked import Asked
from azcp_runtime.preflight.node import look
from azcp_runtime.preflight.within import NoAnswerError, within
from azcp_runtime.source.names import shown

_NAMED: Final = 4
"""Hosts, or ranges of them, in one line; a thousand nodes with one fault are a line, too."""

_TEXTS: Final = 3
"""Lines of one check, where nodes differ in what they found."""

_LONGEST: Final = 400
"""Characters that one check of a node brings to rank 0, each of its texts."""

_PATIENCE_S: Final = 75.0
"""Of a look: two libraries are asked, of which each has its own deadline."""


@dataclass(frozen=True, slots=True)
class _Same:
    """What nodes found alike."""

    check: Check
    nodes: tuple[NodeReport, ...]
    amounts: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """What fails: on which nodes, which is empty where there is one, what was found, and what to do."""

    where: str
    said: str
    remedy: str


def preflight(ranks: Ranks, asked: Asked, env: Mapping[str, str], warn: Callable[[str], None]) -> None:
    """Look at every node; to be called on every rank.

    Args:
        ranks: the world.
        asked: the run's options.
        env: the environment.
        warn: says a line on rank 0.

    Raises:
        PreflightError: on rank 0, when a check fails; all that fail are in it.
    """
    # What is true of the node needs to be looked at by one of its ranks; one that is well sends nothing.
    checks = [] if ranks.seat.rail else looked(lambda: look(asked, env), ranks.hear, asked)
    warnings, failures = sorted_out(gather_reports(ranks, checks or None), ranks.seat.nodes)
    for line in warnings:
        warn(line)
    if failures:
        raise failures_as_error(failures, is_option=asked.require_rdma)


def looked(
    look_here: Callable[[], list[Check]],
    hear: Callable[[], None],
    asked: Asked,
    patience_s: float = _PATIENCE_S,
) -> list[Check]:
    """What is wrong here, in few words; a look that fails is itself a finding.

    Args:
        look_here: looks.
        hear: called meanwhile, so that the others know that this rank lives.
        asked: the run's options.
        patience_s: how long it may take.
    """
    try:
        found = within(patience_s, look_here, hear)
    except (NoAnswerError, OSError, ValueError, LookupError) as error:
        what = str(error) if isinstance(error, NoAnswerError) else f"{type(error).__name__}: {error}"
        status = Status.FAIL if asked.require_rdma else Status.WARN
        text = f"this node cannot be looked at: {shown(os.fsencode(what))}"
        found = [Check("preflight", status, text, "azcp-doctor on that node tells more")]
    return [replace(each, found=each.found[:_LONGEST], remedy=each.remedy[:_LONGEST]) for each in found]


def sorted_out(reports: Sequence[NodeReport], nodes: int) -> tuple[list[str], list[Failure]]:
    """Warnings as lines, and what fails; each once, with its nodes.

    Args:
        reports: what is wrong, of the nodes where something is.
        nodes: how many nodes there are.
    """
    warnings, failures = [], []
    for same in _fewer(_alike(reports)):
        check, where = same.check, _where(same.nodes, nodes)
        said = f"{check.name}: {_with_amounts(check.found, same.amounts)}"
        if check.status is Status.FAIL:
            failures.append(Failure(where, said, check.remedy))
        else:
            warnings.append(f"{where}{': ' if where else ''}{said}; {check.remedy}")
    return warnings, failures


def failures_as_error(failures: Sequence[Failure], *, is_option: bool) -> PreflightError:
    """One error for all that fails, which is RDMA that was asked for: a line each, and one with what to do.

    Args:
        failures: at least one.
        is_option: whether --require-rdma asked for it, and not a setting.
    """
    places = list(dict.fromkeys(failure.where for failure in failures))
    everywhere = places[0] if len(places) == 1 else ""
    asker = "--require-rdma asks" if is_option else "a setting asks"
    lines = [f"{asker} for RDMA, which is not to be had{' ' if everywhere else ''}{everywhere}"]
    for failure in failures:
        where = "" if everywhere else failure.where
        lines += [f"  {where}{': ' if where else ''}{failure.said}", f"      -> {failure.remedy}"]
    last = "drop --require-rdma to run on TCP" if is_option else "--allow-tcp takes TCP all the same"
    return PreflightError("\n".join([*lines, f"  {last}"]))


def _alike(reports: Sequence[NodeReport]) -> list[_Same]:
    members: dict[Check, list[tuple[NodeReport, Check]]] = {}
    for report in reports:
        for check in report.checks:
            members.setdefault(replace(check, amount=None), []).append((report, check))
    return [
        _Same(key, tuple(report for report, _ in same), tuple(check for _, check in same))
        for key, same in members.items()
    ]


def _fewer(every: Sequence[_Same]) -> Iterator[_Same]:
    """Of findings that differ on each node the first ones, and all others as one."""
    kinds: dict[tuple[str, Status], list[_Same]] = {}
    for same in every:
        kinds.setdefault((same.check.name, same.check.status), []).append(same)
    for alike in kinds.values():
        yield from alike[: _TEXTS if len(alike) > _TEXTS + 1 else None]
        if len(alike) > _TEXTS + 1:
            rest = alike[_TEXTS:]
            first = rest[0].check
            yield _Same(
                replace(first, found=f"{first.found}, and {len(rest) - 1} things like it"),
                tuple({report.node: report for same in rest for report in same.nodes}.values()),
                (),
            )


def _where(reports: Sequence[NodeReport], nodes: int) -> str:
    if nodes == 1:
        return ""
    if len(reports) == nodes:
        return f"on all {nodes} nodes"
    names = [shown(os.fsencode(report.host)) for report in reports]
    if len(names) <= _NAMED:
        return f"on {', '.join(names)}"
    numbers = few(_ranges(sorted(report.node for report in reports)), _NAMED)
    return f"on {len(names)} of {nodes} nodes ({numbers}; the first is {names[0]})"


def _ranges(numbers: Sequence[int]) -> list[str]:
    """Numbers in order as 0-3, 7."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return [f"{first}-{last}" if last > first else f"{first}" for first, last in runs]


def _with_amounts(found: str, same: Sequence[Check]) -> str:
    amounts = sorted((check.amount for check in same if check.amount), key=lambda amount: amount.value)
    return f"{found} {amount_text(amounts[0], amounts[-1])}".strip() if amounts else found
