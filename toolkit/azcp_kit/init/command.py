"""What `azcp-kit init` does with its options."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from azcp_runtime.contract import UsageError

from azcp_kit.init.purpose import Purpose, find_purpose
from azcp_kit.init.settle import Ask, settle
from azcp_kit.init.slurm import CONTAINER
from azcp_kit.init.text import examples_in
from azcp_kit.quoting.shell import shell_word
from azcp_kit.spec.read import parse_job

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class InitCommand:
    """The options of `init`; None for what was not given."""

    output: Path
    name: str | None
    image: str | None
    source: str | None
    dest: str | None
    nodes: int | None
    sku: str | None
    auth_identity: str | None
    auth_secret: str | None
    queue: str | None
    security: str | None
    force: bool
    system: str = "kubernetes"
    auth_kubelet_identity: str | None = None
    container: str | None = None
    images: str | None = None
    partition: str | None = None
    sas_file: str | None = None


def run_init(command: InitCommand, ask: Ask | None) -> None:
    """Write a job.toml, and tell what to do with it.

    Args:
        command: the options.
        ask: puts a question to whoever sits at the terminal; None where nobody does.

    Raises:
        UsageError: options are wrong, the input ended, or the file cannot be written.
    """
    purpose = find_purpose(command.system)
    _expect_free(command)
    answers = settle(_given(command, purpose), ask, purpose)
    text = purpose.text(answers)
    # What is written is what the other commands take.
    parse_job(text, command.output.name, more=purpose.checks(answers))
    _write(command, text)
    if examples := examples_in(answers):
        log.info("%s: edit %s before use", command.output, ", ".join(examples))
    log.info("next: %s", _next(answers, shell_word(str(command.output))))


def _next(answers: Mapping[str, str], file: str) -> str:
    if CONTAINER not in answers:
        return f"azcp-kit generate mpijob -f {file} > job.yaml"
    return f"azcp-kit generate sbatch -f {file} --container {answers[CONTAINER]} > job.sbatch"


def _given(command: InitCommand, purpose: Purpose) -> dict[str, str]:
    """The options by the keys of the questions.

    Raises:
        UsageError: one is of another purpose.
    """
    options = _options(command)
    given = {key: value for key, value in options.items() if value is not None}
    asked = {question.key for question in purpose.questions}
    if foreign := [key for key in given if key not in asked]:
        names = ", ".join(f"--{_flag(key)}" for key in foreign)
        raise UsageError(f"{names}: not asked with --for {command.system}", remedy="leave it out")
    return given


def _flag(key: str) -> str:
    return key.removeprefix("slurm.").replace(".", "-")


def _options(command: InitCommand) -> dict[str, str | None]:
    return {
        "source": command.source,
        "nodes": None if command.nodes is None else str(command.nodes),
        "name": command.name,
        "image": command.image,
        "dest": command.dest,
        "sku": command.sku,
        "auth.identity": command.auth_identity,
        "auth.secret": command.auth_secret,
        "queue": command.queue,
        "security": command.security,
        "auth.kubelet-identity": command.auth_kubelet_identity,
        CONTAINER: command.container,
        "slurm.images": command.images,
        "slurm.partition": command.partition,
        "slurm.sas-file": command.sas_file,
    }


def _expect_free(command: InitCommand) -> None:
    """Refuse before anything is asked."""
    if not command.force and command.output.exists():
        raise _exists(command.output)


def _write(command: InitCommand, text: str) -> None:
    try:
        # Exclusive: a file that came to be while questions were answered is kept too.
        with command.output.open("w" if command.force else "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError as error:
        raise _exists(command.output) from error
    except OSError as error:
        raise UsageError(f"{command.output} cannot be written: {error.strerror}") from error


def _exists(output: Path) -> UsageError:
    return UsageError(f"{output} exists", remedy="give another --output, or --force to replace it")
