"""The findings of an all-reduce test as a table for a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from azcp_kit.nccl.judge import Finding, Verdict
from azcp_kit.nccl.log import Run
from azcp_kit.shown import shown
from azcp_kit.units import format_size

_STYLES: Final = {Verdict.OK: "green", Verdict.FAIL: "bold red", Verdict.OPEN: "yellow"}


def print_report(run: Run, findings: Sequence[Finding]) -> None:
    """Print it on standard output."""
    Console(highlight=False).print(report(run, findings))


def report(run: Run, findings: Sequence[Finding]) -> Group:
    """The table, and the reasons below it."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name in (run.library or "All-reduce", "Found", "Wanted", "Verdict"):
        table.add_column(shown(name))
    for finding in findings:
        cells = (Text(shown(text)) for text in (finding.name, finding.found, finding.wanted))
        table.add_row(*cells, Text(finding.verdict, style=_STYLES[finding.verdict]))
    for name, found in _measurements(run):
        table.add_row(name, found)
    reasons = [Text(f"{f.name}: {shown(f.why, 500)}") for f in findings if f.why]
    return Group(table, *([Text(), *reasons] if reasons else []))


def _measurements(run: Run) -> list[tuple[str, str]]:
    """What is told beside what was judged."""
    found = []
    if run.largest.out_of_place and run.largest.in_place:
        in_place = run.largest.in_place.busbw_gbps
        found.append((f"in place, {format_size(run.largest.size_bytes)}", f"{in_place:.2f} GB/s"))
    if run.average_gbps is not None:
        found.append((f"average of {len(run.rows)} sizes", f"{run.average_gbps:.2f} GB/s"))
    return found
