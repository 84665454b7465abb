"""A batch script as the rules see it: its directives, its commands, the steps that srun starts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from azcp_kit.lint.settings import settings_of
from azcp_kit.lint.setup import Setup
from azcp_kit.lint.shell import Command, Script, parse_script

_SHORT: Final = {
    "-N": "--nodes", "-n": "--ntasks", "-c": "--cpus-per-task", "-t": "--time", "-J": "--job-name",
    "-o": "--output", "-e": "--error", "-p": "--partition", "-a": "--array", "-A": "--account",
}  # fmt: skip
_FLAGS: Final = frozenset({"--requeue", "--exclusive", "--no-requeue", "--hold", "--wait", "--parsable"})
_TRIVIAL: Final = frozenset(
    {"mkdir", "du", "ls", "hostname", "df", "rm", "echo", "cat", "nvidia-smi", "date", "true", "test",
     "chmod", "rmdir", "ln", "cp", "chown", "ibstat", "ibv_devinfo", "scontrol", "sleep"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Directive:
    """One option of an #SBATCH line by its long name; sbatch reads those above the first command."""

    name: str
    value: str
    line: int
    is_read: bool


@dataclass(frozen=True, slots=True)
class Step:
    """An srun that does more than look around, with the commands inside it."""

    command: Command
    inner: tuple[Command, ...]

    @property
    def line(self) -> int:
        """Where it begins."""
        return self.command.line

    def runs(self, *programs: str) -> bool:
        """Whether one of the programs runs in the step."""
        return any(command.runs(*programs) for command in (self.command, *self.inner))

    @property
    def container_image(self) -> str:
        """The value of --container-image, "" if the step has no container of pyxis."""
        image = self.command.option("--container-image")
        return image.text if image else ""


@dataclass(frozen=True, slots=True)
class Batch:
    """A whole batch script."""

    directives: tuple[Directive, ...]
    script: Script
    setup: Setup
    steps: tuple[Step, ...]

    def directive(self, name: str) -> Directive | None:
        """The last directive of that name that sbatch reads."""
        found = (d for d in reversed(self.directives) if d.name == name and d.is_read)
        return next(found, None)


def read_batch(text: str) -> Batch:
    """Read a batch script."""
    script = parse_script(text)
    first_command = min((command.line for command in script.commands), default=len(text))
    directives = tuple(_directives(text, first_command))
    nodes = next((d.value for d in directives if d.name == "--nodes" and d.value.isdecimal()), "")
    setup = Setup(
        title="the script",
        script=script,
        settings=tuple(settings_of(script)),
        is_pod=False,
        may_be_root=False,
        is_operator_launcher=False,
        nodes=int(nodes) if 0 < len(nodes) < 9 else None,  # noqa: PLR2004 - no cluster is that large
        slots=None,
    )
    return Batch(directives, script, setup, tuple(_steps(script)))


def _directives(text: str, first_command: int) -> Iterator[Directive]:
    for line, content in enumerate(text.splitlines(), 1):
        if content.startswith("#SBATCH"):
            for name, value in _options(content.removeprefix("#SBATCH")):
                yield Directive(name, value, line, line < first_command)


def _options(text: str) -> Iterator[tuple[str, str]]:
    """The options of one directive; what stands behind # is a comment to sbatch too."""
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        words = text.split()
    place = 0
    while place < len(words):
        word = words[place]
        place += 1
        name, sign, value = word.partition("=")
        if short := re.fullmatch(r"(-[A-Za-z])(.+)", word):
            name, value = short[1], short[2]
        elif not sign and name not in _FLAGS and place < len(words) and not words[place].startswith("-"):
            value = words[place]
            place += 1
        yield _SHORT.get(name, name), value


def _steps(script: Script) -> Iterator[Step]:
    for command, inner in _with_inner(script):
        place = command.index_of("srun")
        if place is None:
            continue
        programs = [text for text in command.texts[place + 1 :] if not text.startswith("-")]
        if inner or not _TRIVIAL & set(programs[:2]):
            yield Step(command, tuple(inner))


def _with_inner(script: Script) -> list[tuple[Command, list[Command]]]:
    """Each command of the script itself, with those that a shell in it is given: they come right after it."""
    found: list[tuple[Command, list[Command]]] = []
    for command in script.commands:
        if command.within is None:
            found.append((command, []))
        else:
            found[-1][1].append(command)
    return found
