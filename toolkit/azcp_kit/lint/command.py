"""What `azcp-kit lint` does: read one file, print what was found, count it."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from azcp_runtime.contract import ExitCode, UsageError

from azcp_kit.lint.check import lint_text
from azcp_kit.lint.finding import Finding, Severity
from azcp_kit.shown import shown

MOST_BYTES: Final = 4 * 2**20
"""As much as Slurm takes for a batch script; objects of Kubernetes are smaller still."""


@dataclass(frozen=True, slots=True)
class LintCommand:
    """The options of `lint`; `file` is - for standard input."""

    file: str
    as_json: bool = False
    strict: bool = False
    """Warnings count as errors."""


def run_lint(command: LintCommand) -> ExitCode:
    """Print the findings on standard output; USAGE if any is an error.

    Raises:
        UsageError: the file cannot be read, or is neither a manifest nor a batch script.
    """
    name = "stdin" if command.file == "-" else shown(command.file)
    text = _decoded(_read(command.file), name)
    try:
        findings = lint_text(text)
    except UsageError as error:
        raise UsageError(f"{name}: {error.what}", cause=error.cause, remedy=error.remedy) from None
    if command.as_json:
        sys.stdout.write(json.dumps([asdict(finding) for finding in findings], indent=2) + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in report_lines(name, findings))
    fatal = {Severity.ERROR, Severity.WARNING} if command.strict else {Severity.ERROR}
    return ExitCode.USAGE if any(finding.severity in fatal for finding in findings) else ExitCode.DONE


def report_lines(name: str, findings: Sequence[Finding]) -> Iterator[str]:
    """The findings for a reader: where and what, why, the fix; at last how many there are."""
    for finding in findings:
        yield f"{name}:{finding.line}: {finding.severity} {finding.rule}: {finding.what}"
        yield f"    why: {finding.why}"
        yield f"    fix: {finding.fix}"
    counts = Counter(finding.severity for finding in findings)
    parts = [f"{counts[s]} {s}{'' if counts[s] == 1 else 's'}" for s in Severity if counts[s]]
    yield f"{name}: {', '.join(parts) or 'nothing found'}"


def _read(file: str) -> bytes:
    try:
        if file == "-":
            return sys.stdin.buffer.read(MOST_BYTES + 1)
        with Path(file).open("rb") as stream:
            return stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{shown(file)} cannot be read: {error.strerror}") from None


def _decoded(content: bytes, name: str) -> str:
    if len(content) > MOST_BYTES:
        raise UsageError(f"{name} is larger than {MOST_BYTES // 2**20} MiB, no manifest or script is")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{name} is no text in UTF-8") from None
    if "\0" in text:
        raise UsageError(f"{name} is no text: it holds a NUL")
    if not text.strip():
        raise UsageError(f"{name} is empty")
    return text.replace("\r\n", "\n")
