"""Options that azcp-launch and azcp-distribute do not have."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from azcp_kit.lint.finding import Finding, Rule, Severity, named
from azcp_kit.lint.launch_line import launch_lines, options_of
from azcp_kit.lint.near import nearest
from azcp_kit.lint.setup import Setup

UNKNOWN_OPTION: Final = Rule(
    "K115-unknown-option",
    Severity.ERROR,
    why="the program refuses its arguments and ends before it begins",
    fix="see `azcp-launch --help` and `azcp-distribute --help`; the command's own options stand after --",
)

MOST_OPTIONS: Final = 20
"""Unknown options of one script that are told; nobody mends more at once."""


def unknown_options(setup: Setup) -> Iterator[Finding]:
    """Each option that the program would refuse, with the one that may be meant."""
    unknown = ((call.program, word) for call in launch_lines(setup.script) for word in call.unknown)
    for program, word in islice(unknown, MOST_OPTIONS):
        name = word.text.partition("=")[0]
        near = nearest(f"--{name.lstrip('-')}".replace("_", "-"), options_of(program))
        fix = f"did you mean {near}?" if near else ""
        yield UNKNOWN_OPTION.at(word.line, f"{program} has no option {named(name)}", fix=fix)


SETUP_RULES: Final = (unknown_options,)
