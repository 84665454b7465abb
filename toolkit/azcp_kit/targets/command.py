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
from azcp_kit.spec.rules import example_source
from azcp_kit.targets.checks import target_problems
from azcp_kit.targets.cyclecloud.command import run_cyclecloud
from azcp_kit.targets.header import header
from azcp_kit.targets.identity import identity_problems, identity_script
from azcp_kit.targets.nccl_test import nccl_test_problems, nccl_test_script
from azcp_kit.targets.slurm.import_image import import_script
from azcp_kit.targets.slurm.problems import import_problems, sbatch_problems
from azcp_kit.targets.slurm.sbatch import sbatch_script
from azcp_kit.targets.slurm.wish import Wish, read_wish
from azcp_kit.targets.ssh_secret import ssh_secret_problems, ssh_secret_script
from azcp_kit.targets.table import TARGETS

_SCRIPTS: Final[Mapping[str, Callable[[JobSpec], str]]] = MappingProxyType(
    {"identity": identity_script, "ssh-secret": ssh_secret_script}
)
_SLURM: Final = MappingProxyType(
    {
        "sbatch": (sbatch_script, sbatch_problems),
        "import": (import_script, import_problems),
        "nccl-test": (nccl_test_script, nccl_test_problems),
    }
)
CYCLECLOUD: Final = "cyclecloud"
"""A folder of files, where the others are one text."""

KINDS: Final = (*TARGETS, *_SCRIPTS, *_SLURM, CYCLECLOUD)


@dataclass(frozen=True, slots=True)
class GenerateCommand:
    """One call.

    Args:
        kind: one of KINDS.
        file: the job.toml.
        output: where the text goes, standard output if None; of a CycleCloud project, the folder.
        settings: ``key=value`` that come over the file's.
        container: what the steps of a script for Slurm run in.
        launch: how it launches phase 1.
    """

    kind: str
    file: Path
    output: Path | None
    settings: Sequence[str]
    container: str = ""
    launch: str = ""


def run_generate(command: GenerateCommand) -> None:
    """Write the text.

    Raises:
        SpecError: the job has problems; all of them are named.
        UsageError: there is no such kind, or the output cannot be written.
    """
    if command.kind not in KINDS:
        raise UsageError(f"{command.kind} is no kind of manifest", remedy=f"one of {', '.join(KINDS)}")
    wish = _wish(command)
    if command.kind == CYCLECLOUD:
        run_cyclecloud(command.file, command.output, command.settings)
        return
    text = generate(command.kind, read_checked(command.kind, command.file, command.settings, wish), wish)
    if command.output is None:
        _print(text)
        return
    try:
        command.output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{command.output} cannot be written: {error.strerror}") from error


def _wish(command: GenerateCommand) -> Wish | None:
    """The options that only scripts for Slurm have.

    Raises:
        UsageError: another kind is given one, or one of them is wrong.
    """
    if command.kind not in _SLURM:
        for name in ("container", "launch"):
            if getattr(command, name):
                raise UsageError(f"--{name} is for {' and '.join(_SLURM)}, not for {command.kind}")
        return None
    if command.kind != "sbatch" and command.launch:
        raise UsageError(f"--launch is for sbatch, not for {command.kind}")
    return read_wish(command.container, command.launch)


def _print(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        raise UsageError(f"standard output cannot be written: {error.strerror}") from error


def read_checked(kind: str, file: Path, settings: Sequence[str], wish: Wish | None = None) -> JobSpec:
    """A job that can be of this kind."""
    if wish is not None:
        problems = _SLURM[kind][1]
        return read_job(file, settings, lambda job: problems(job, wish))
    if kind == "identity":
        return read_job(file, settings, identity_problems, example_source)
    if kind == "ssh-secret":
        return read_job(file, settings, ssh_secret_problems)
    return read_job(file, settings, lambda job: target_problems(job, kind))


def generate(kind: str, job: JobSpec, wish: Wish | None = None) -> str:
    """The text of a kind; pure."""
    if wish is not None:
        return _SLURM[kind][0](job, wish)
    if kind in _SCRIPTS:
        return _SCRIPTS[kind](job)
    return header(kind, job) + manifest_text(TARGETS[kind].documents(job))
