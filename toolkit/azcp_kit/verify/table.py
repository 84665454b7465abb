"""The proof as a table for a person."""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from azcp_kit.shown import shown
from azcp_kit.units import format_size
from azcp_kit.verify.verification import Check, Outcome, Verification

_LONGEST: Final = 1000
_STYLES: Final = {Outcome.OK: "green", Outcome.FAIL: "bold red", Outcome.NOT_APPLICABLE: "dim"}
_SHORT: Final = {Outcome.NOT_APPLICABLE: "n/a"}


def print_verification(found: Verification, console: Console) -> None:
    """Print it."""
    console.print(
        Text(shown(found.image), style="bold"), Text(f"on {shown(found.base) or 'an unknown base'}")
    )
    console.print(verification_table(found.checks))
    if found.added_bytes is not None:
        console.print(Text(f"added: {format_size(found.added_bytes)} in {found.added_layers} layers"))


def verification_table(checks: tuple[Check, ...]) -> Table:
    """One row for each check; the remedy below what was found."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in checks:
        outcome = Text(_SHORT.get(check.outcome, check.outcome.value), style=_STYLES[check.outcome])
        remedy = f"\n-> {shown(check.remedy, _LONGEST)}" if check.remedy else ""
        table.add_row(outcome, Text(shown(check.name)), Text(shown(check.found, _LONGEST) + remedy))
    return table
