"""The quick look on every node, said once for all: warnings in a line each, failures as the run's end."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from azcp_runtime.contract import PreflightError
from azcp_runtime.doctor.check import Check, Status, amount_text, few
from azcp_runtime.doctor.gather import NodeReport, gather_reports
from azcp_runtime.mpi.ranks import Ranks
from azcp_runtime.preflight.node import Asked, look
from azcp_runtime.source.names import shown

_NAMED: Final = 4
"""Hosts in one line; a thousand nodes with one fault are a line, too."""


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
    # What is true of the node needs to be looked at by one of its ranks.
    checks = None if ranks.seat.rail else look(asked, env)
    warnings, failures = sorted_out(gather_reports(ranks, checks), ranks.seat.nodes)
    for line in warnings:
        warn(line)
    if failures:
        raise failures_as_error(failures)


def sorted_out(reports: Sequence[NodeReport], nodes: int) -> tuple[list[str], list[tuple[str, str]]]:
    """Warnings as lines, and failures as pairs of what and remedy; each once, with its hosts.

    Args:
        reports: what is wrong on each node.
        nodes: how many nodes there are.
    """
    hosts: dict[tuple[str, Status, str, str], list[tuple[str, Check]]] = {}
    for report in reports:
        for check in report.checks:
            key = (check.name, check.status, check.found, check.remedy)
            hosts.setdefault(key, []).append((report.host, check))
    warnings, failures = [], []
    for (name, status, found, remedy), same in hosts.items():
        said = f"{_where([host for host, _ in same], nodes)}{name}: {_with_amounts(found, same)}"
        if status is Status.FAIL:
            failures.append((said, remedy))
        else:
            warnings.append(f"{said}; {remedy}")
    return warnings, failures


def failures_as_error(failures: Sequence[tuple[str, str]]) -> PreflightError:
    """One error for all that fails; the first remedy follows its failure, the others theirs."""
    *others, (what, remedy) = failures
    before = "".join(f"{other}; {its_remedy} | " for other, its_remedy in others)
    return PreflightError(f"{before}{what}", remedy=remedy)


def _where(hosts: Sequence[str], nodes: int) -> str:
    if nodes == 1:
        return ""
    if len(hosts) == nodes:
        return f"on all {nodes} nodes: "
    return f"on {few([shown(os.fsencode(host)) for host in hosts], _NAMED)}: "


def _with_amounts(found: str, same: Sequence[tuple[str, Check]]) -> str:
    amounts = sorted((check.amount for _, check in same if check.amount), key=lambda amount: amount.value)
    return f"{found} {amount_text(amounts[0], amounts[-1])}".strip() if amounts else found
