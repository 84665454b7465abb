"""The groups as text that any terminal and any log can show."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from azcp_runtime.doctor.check import Amount, Check, Status, amount_text
from azcp_runtime.doctor.gather import Group, NodeReport
from azcp_runtime.source.names import shown

_NAMED: Final = 8
_NARROWEST: Final = 60


def table(groups: Sequence[Group], width: int) -> Iterator[str]:
    """Line by line: the nodes, then their checks, what is wrong with its remedy.

    Args:
        groups: nodes that found the same.
        width: of the terminal, in columns.
    """
    for number, each in enumerate(groups):
        if number:
            yield ""
        yield from _wrapped(_heading(each.hosts), "", width)
        longest = max((len(check.name) for check in each.checks), default=0)
        for check, span in zip(each.checks, each.spans, strict=True):
            yield from _row(check, span, longest, width)


def verdict(reports: Sequence[NodeReport]) -> str:
    """The last line: how much of it is wrong; what many nodes found counts once."""
    found = {(check.name, check.status) for report in reports for check in report.checks}
    fails, warns = (sum(status is wanted for _, status in found) for wanted in (Status.FAIL, Status.WARN))
    nodes = f"{len(reports)} nodes: " if len(reports) > 1 else ""
    warnings = f"{warns or 'no'} warning{'' if warns == 1 else 's'}"
    if fails:
        return f"{nodes}{fails} failure{'' if fails == 1 else 's'}, {warnings}"
    return f"{nodes}{warnings}, nothing fails"


def printable(line: str, encoding: str | None) -> str:
    """The line in what the stream can write; other characters as escapes."""
    target = encoding or "ascii"
    return line.encode(target, "backslashreplace").decode(target)


def _heading(hosts: Sequence[str]) -> str:
    names = [shown(os.fsencode(host)) for host in hosts]
    if len(names) > _NAMED:
        return f"{' '.join(names[:_NAMED])} ... ({len(names)} nodes)"
    return " ".join(names)


def _row(check: Check, span: tuple[Amount, Amount] | None, longest: int, width: int) -> Iterator[str]:
    start = f"  {check.status.value:<4}  {check.name:<{longest}}  "
    amount = amount_text(*span) if span else ""
    yield from _wrapped(f"{check.found} {amount}".strip(), start, width)
    if check.remedy:
        yield from _wrapped(f"-> {check.remedy}", " " * len(start), width)


def _wrapped(text: str, start: str, width: int) -> Iterator[str]:
    lines = textwrap.wrap(
        text,
        width=max(width, _NARROWEST),
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_on_hyphens=False,
        break_long_words=False,
    )
    yield from lines or [start.rstrip()]
