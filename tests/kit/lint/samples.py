"""The sample files of the linter's tests, and a way to put one trap into one of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azcp_kit.lint.check import lint_text
from azcp_kit.lint.finding import Finding, Severity

FOLDER: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Trap:
    """A change of a clean sample, and what the linter must say about it.

    Args:
        sentence: what is wrong, the test's name.
        old: text of the sample, there once.
        new: what takes its place.
        rule: the number of the one rule that must speak, with the severity's first letter: K104e.
        at: a part of the line that it must point at; the first line of `new` if empty.
    """

    sentence: str
    old: str
    new: str
    rule: str
    at: str = ""


def sample(name: str) -> str:
    """The text of a sample."""
    return (FOLDER / name).read_text(encoding="utf-8")


def findings(text: str) -> dict[str, Finding]:
    """Errors and warnings by rule number and severity; the notes are left out unless asked by `notes`."""
    return {_short(finding): finding for finding in lint_text(text) if finding.severity is not Severity.NOTE}


def rules(text: str, *, notes: bool = False) -> list[str]:
    """The rule numbers with their severities, sorted."""
    found = lint_text(text)
    return sorted(_short(f) for f in found if notes or f.severity is not Severity.NOTE)


def check(name: str, trap: Trap) -> None:
    """Put the trap into the sample: exactly its rule speaks, and points at its line."""
    clean = sample(name)
    assert clean.count(trap.old) == 1, f"{trap.old!r} is not there once"
    text = clean.replace(trap.old, trap.new)
    spoken = [finding for finding in lint_text(text) if _short(finding) != "K601n"]
    assert [_short(finding) for finding in spoken] == [trap.rule]
    fragment = trap.at or trap.new.strip().split("\n", 1)[0].strip()
    assert fragment in text.splitlines()[spoken[0].line - 1]


def line_of(text: str, fragment: str) -> int:
    """The number of the one line that holds the fragment."""
    lines = [number for number, line in enumerate(text.splitlines(), 1) if fragment in line]
    assert len(lines) == 1, f"{fragment!r} is in the lines {lines}"
    return lines[0]


def _short(finding: Finding) -> str:
    return f"{finding.rule.split('-')[0]}{finding.severity[0]}"
