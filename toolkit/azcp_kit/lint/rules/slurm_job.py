"""The batch job as a whole: directives, signals, requeueing, the environment of its steps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from azcp_kit.inspect.secret_values import names_a_secret
from azcp_kit.lint.finding import Finding, Rule, Severity, named
from azcp_kit.lint.sbatch import Batch
from azcp_kit.lint.settings import assignments_in_list

IGNORED_DIRECTIVE: Final = Rule(
    "S101-directive-ignored",
    Severity.ERROR,
    why="sbatch stops reading directives at the first command",
    fix="move all #SBATCH lines to the top, before any command",
)
EMPTY_ENVIRONMENT: Final = Rule(
    "S102-empty-environment",
    Severity.WARNING,
    why="with --export=NONE steps get none of the script's variables, not even those that it exports",
    fix="export what is needed in the script and give srun --export=ALL",
)
SPLIT_VALUE: Final = Rule(
    "S103-export-splits-at-comma",
    Severity.ERROR,
    why="--export takes a list with commas: the rest of the value becomes a name of its own and is lost",
    fix="export the variable in the script, then use --export=ALL",
)
SECRET_IN_EXPORT: Final = Rule(
    "S104-secret-in-export",
    Severity.ERROR,
    why="options of a job are shown by scontrol and ps to everybody, and kept in the accounting database",
    fix="read it from a file of mode 0600 in the script (--sas-file), or export it before sbatch",
)
NO_SIGNAL: Final = Rule(
    "S105-killed-without-warning",
    Severity.NOTE,
    why="at the time limit everything is killed at once: no journal is flushed, no clean end",
    fix="add #SBATCH --signal=B:TERM@120, run srun in the background, and forward the signal from a trap",
)
LOG_TRUNCATED: Final = Rule(
    "S106-requeue-truncates-log",
    Severity.WARNING,
    why="a requeued job opens its output anew, and the reason why it was requeued is gone",
    fix="add #SBATCH --open-mode=append",
)
MANY_JOBS: Final = Rule(
    "S107-array-or-heterogeneous",
    Severity.NOTE,
    why="each task of an array downloads by itself, also onto a node that another one uses; steps of a"
    " heterogeneous job run in its first component unless told otherwise",
    fix="distribute in one job that the others depend on, or use --het-group",
)
GOES_ON_AFTER_FAILURE: Final = Rule(
    "S108-goes-on-after-failure",
    Severity.NOTE,
    why="after a failed download the next step starts on incomplete data",
    fix="begin with `set -euo pipefail`",
)

_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_SIGNATURE: Final = re.compile(r"\bsig=|AccountKey=|SharedAccessSignature=")


def ignored_directives(batch: Batch) -> Iterator[Finding]:
    """Directives below the first command."""
    for directive in batch.directives:
        if not directive.is_read:
            yield IGNORED_DIRECTIVE.at(
                directive.line, f"{named(directive.name)} stands after the first command"
            )


def exports(batch: Batch) -> Iterator[Finding]:
    """What --export does to the environment, in directives and at each srun."""
    places = [(d.value, d.line) for d in batch.directives if d.name == "--export"]
    for command in batch.script.commands:
        value = command.option("--export") if command.runs("srun", "sbatch") else None
        if value:
            places.append((value.text, value.line))
    for value_text, line in places:
        yield from _export(value_text, line)


def _export(value: str, line: int) -> Iterator[Finding]:
    if value in {"NONE", "NIL"}:
        yield EMPTY_ENVIRONMENT.at(line, f"--export={value}")
    parts = value.split(",")
    broken = next((part for part in parts if not _NAME.match(part) or ":" in part.partition("=")[0]), None)
    is_plain = "$" not in value and "{" not in value
    holds_secret = _SIGNATURE.search(value) or any(
        text and names_a_secret(name) and not text.startswith("/")
        for name, text in assignments_in_list(value)
    )
    if holds_secret:
        yield SECRET_IN_EXPORT.at(line, "--export holds a secret's value")
    elif broken is not None and is_plain and len(parts) > 1:
        yield SPLIT_VALUE.at(line, f"a value of --export has a comma: {named(broken)} is taken for a name")


def time_limit(batch: Batch) -> Iterator[Finding]:
    """A warning before the end, where there is an end and something to flush."""
    limit = batch.directive("--time")
    if limit and batch.steps and not batch.directive("--signal"):
        yield NO_SIGNAL.at(limit.line, f"--time={limit.value} without --signal")


def requeue(batch: Batch) -> Iterator[Finding]:
    """What a requeued job does to its log."""
    directive = batch.directive("--requeue")
    mode = batch.directive("--open-mode")
    if directive and not (mode and mode.value == "append"):
        yield LOG_TRUNCATED.at(directive.line, "--requeue without --open-mode=append")


def many_jobs(batch: Batch) -> Iterator[Finding]:
    """Arrays and heterogeneous jobs."""
    for directive in batch.directives:
        if directive.name in {"--array", "hetjob", "packjob"} and directive.is_read:
            yield MANY_JOBS.at(directive.line, f"{named(directive.name)} with a download")


def stops_on_failure(batch: Batch) -> Iterator[Finding]:
    """`set -e`, or an option of the first line."""
    first_line = batch.script.text.split("\n", 1)[0]
    options = [c.texts[1] for c in batch.script.commands if c.texts[0] == "set" and len(c.texts) > 1]
    sets = any(re.fullmatch(r"-\w*e\w*", option) for option in options) or re.search(r"\s-\w*e", first_line)
    if len(batch.steps) > 1 and not sets:
        yield GOES_ON_AFTER_FAILURE.at(1, f"{len(batch.steps)} steps without set -e")


BATCH_RULES: Final = (
    ignored_directives, exports, time_limit, requeue, many_jobs, stops_on_failure,
)  # fmt: skip
