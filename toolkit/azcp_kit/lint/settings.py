"""Every place where a variable or an MCA parameter is set, in one form, so that a rule looks once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from azcp_kit.lint.shell import Command, Script

MPIRUN: Final = ("mpirun", "mpiexec", "orterun", "prterun")
CONTAINER_RUNNERS: Final = ("apptainer", "singularity")

_MCA_OPTIONS: Final = frozenset({"-mca", "--mca", "-gmca", "--gmca"})


class Way(Enum):
    """How a variable is set."""

    ENV = "the container's env"
    SCRIPT = "the script"
    MPIRUN = "mpirun"
    EXPORT = "srun --export"
    CONTAINER = "the container program's --env"


@dataclass(frozen=True, slots=True)
class Setting:
    """A variable; an MCA parameter is one whose name begins with OMPI_MCA_."""

    name: str
    value: str | None
    """None where only the run can tell."""
    line: int
    way: Way
    command: Command | None = None


def settings_of(script: Script) -> Iterator[Setting]:
    """All settings that the script's commands make, in order."""
    for command in script.commands:
        for name, word in command.assignments():
            yield Setting(name, script.value(word), word.line, Way.SCRIPT, command)
        if command.runs(*MPIRUN):
            yield from _of_mpirun(script, command)
        if command.runs(*CONTAINER_RUNNERS):
            yield from _of_option(script, command, "--env", Way.CONTAINER)
        if command.runs("srun"):
            yield from _of_option(script, command, "--export", Way.EXPORT)


def _of_mpirun(script: Script, command: Command) -> Iterator[Setting]:
    words = command.words
    for place, word in enumerate(words):
        if word.text in _MCA_OPTIONS and place + 2 < len(words):
            value = script.value(words[place + 2])
            yield Setting(f"OMPI_MCA_{words[place + 1].text}", value, word.line, Way.MPIRUN, command)
    for option, value_word in command.options("-x"):
        name, sign, _ = value_word.text.partition("=") if value_word else ("", "", "")
        value = script.value(value_word) if value_word and sign else None
        text = value.partition("=")[2] if value is not None else None
        yield Setting(name, text, value_word.line if value_word else option.line, Way.MPIRUN, command)


def _of_option(script: Script, command: Command, option: str, way: Way) -> Iterator[Setting]:
    for _, word in command.options(option):
        text = script.value(word) if word else None
        if word is None or text is None:
            continue
        for name, value in assignments_in_list(text):
            yield Setting(name, value, word.line, way, command)


def assignments_in_list(text: str) -> Iterator[tuple[str, str]]:
    """The NAME=VALUE of a list with commas; a part that is no assignment belongs to none."""
    for part in text.split(","):
        name, sign, value = part.partition("=")
        if sign:
            yield name, value


def is_set(settings: tuple[Setting, ...], *names: str) -> bool:
    """Whether one of the variables is set or handed on."""
    return any(setting.name in names for setting in settings)
