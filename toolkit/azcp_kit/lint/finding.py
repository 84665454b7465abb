"""What a rule says about one line, and the rule itself: its name, why it matters, how to mend it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from azcp_kit.shown import shown

LONGEST_NAME = 80


class Severity(StrEnum):
    """How sure it is that something goes wrong."""

    ERROR = "error"
    """The job fails, or it does something else than it says."""
    WARNING = "warning"
    """It fails or is slow on some clusters, or under load."""
    NOTE = "note"
    """Worth knowing."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One trap at one line (counted from 1)."""

    rule: str
    severity: Severity
    line: int
    what: str
    why: str
    fix: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A trap: its name on the screen, and what is the same wherever it is found."""

    name: str
    severity: Severity
    why: str
    fix: str

    def at(self, line: int, what: str, *, fix: str = "", severity: Severity | None = None) -> Finding:
        """The trap, found at `line`; `fix` and `severity` where they differ from the rule's own."""
        return Finding(self.name, severity or self.severity, line, what, self.why, fix or self.fix)


def named(text: str) -> str:
    """A name out of the file, quoted for a message."""
    return f"'{shown(text, LONGEST_NAME)}'"
