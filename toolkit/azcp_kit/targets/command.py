"""`azcp-kit generate KIND`: a job.toml in, a manifest or a script out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from azcp_runtime.contract import UsageError

from azcp_kit.manifest.write import manifest_text
from azcp_kit.spec.job import JobSpec
from azcp_kit.spec.read import read_job
from azcp_kit.targets.checks import target_problems
from azcp_kit.targets.header import header
from azcp_kit.targets.identity import identity_problems, identity_script
from azcp_kit.targets.ssh_secret import ssh_secret_problems, ssh_secret_script
from azcp_kit.targets.table import TARGETS

_SCRIPTS: Final[Mapping[str, Callable[[JobSpec], str]]] = MappingProxyType(
    {"identity": identity_script, "ssh-secret": ssh_secret_script}
)
KINDS: Final = (*TARGETS, *_SCRIPTS)


@dataclass(frozen=True, slots=True)
class GenerateCommand:
    """One call.

    Args:
        kind: one of KINDS.
        file: the job.toml.
        output: where the text goes; standard output if None.
        settings: ``key=value`` that come over the file's.
    """

    kind: str
    file: Path
    output: Path | None
    settings: Sequence[str]


def run_generate(command: GenerateCommand) -> None:
    """Write the text.

    Raises:
        SpecError: the job has problems; all of them are named.
        UsageError: there is no such kind, or the output cannot be written.
    """
    if command.kind not in KINDS:
        raise UsageError(f"{command.kind} is no kind of manifest", remedy=f"one of {', '.join(KINDS)}")
    text = generate(command.kind, read_checked(command.kind, command.file, command.settings))
    if command.output is None:
        sys.stdout.write(text)
        return
    try:
        command.output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{command.output} cannot be written: {error.strerror}") from error


def read_checked(kind: str, file: Path, settings: Sequence[str]) -> JobSpec:
    """A job that can be of this kind."""
    if kind == "identity":
        return read_job(file, settings, identity_problems)
    if kind == "ssh-secret":
        return read_job(file, settings, ssh_secret_problems)
    return read_job(file, settings, lambda job: target_problems(job, kind))


def generate(kind: str, job: JobSpec) -> str:
    """The text of a kind; pure."""
    if kind in _SCRIPTS:
        return _SCRIPTS[kind](job)
    return header(kind, job) + manifest_text(TARGETS[kind].documents(job))
