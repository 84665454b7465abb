"""What `azcp-kit init` does with its options."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from azcp_runtime.contract import UsageError

from azcp_kit.init.settle import Ask, settle
from azcp_kit.init.text import examples_in, job_toml
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


def run_init(command: InitCommand, ask: Ask | None) -> None:
    """Write a job.toml, and tell what to do with it.

    Args:
        command: the options.
        ask: puts a question to whoever sits at the terminal; None where nobody does.

    Raises:
        UsageError: options are wrong, the input ended, or the file cannot be written.
    """
    _expect_free(command)
    answers = settle(_given(command), ask)
    text = job_toml(answers)
    # What is written is what the other commands take.
    parse_job(text, command.output.name)
    _write(command, text)
    if examples := examples_in(answers):
        log.info("%s: edit %s before use", command.output, ", ".join(examples))
    log.info("next: azcp-kit generate mpijob -f %s > job.yaml", shell_word(str(command.output)))


def _given(command: InitCommand) -> dict[str, str]:
    options = {
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
    }
    return {key: value for key, value in options.items() if value is not None}


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
