"""The arguments of azcp-launch and azcp-distribute, read as these programs read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from azcp_runtime.contract.options import DISTRIBUTE_OPTIONS

from azcp_kit.lint.shell import Command, Script
from azcp_kit.lint.shell_words import Word

LAUNCH: Final = "azcp-launch"
DISTRIBUTE: Final = "azcp-distribute"
LAUNCH_OPTIONS: Final[Mapping[str, bool]] = MappingProxyType(
    {
        "--alone-after": True,
        "--command-on": True,
        "--every-node": False,
        "--hostfile": True,
        "--hosts": True,
        "--key-seed": True,
        "--master-port": True,
        "--node-file": True,
        "--nodes": True,
        "--port": True,
        "--wait": True,
    }
)
"""Whether each of azcp-launch's own options takes a value."""

_NOT_RUN: Final = frozenset({"chmod", "chown", "cp", "file", "install", "ln", "ls", "mv", "rm", "stat"})


@dataclass(frozen=True, slots=True)
class LaunchLine:
    """One call of one of the two programs."""

    program: str
    line: int
    places: tuple[Word, ...]
    """SOURCE, DEST; empty where a variable or an unknown option leaves open which words they are."""
    options: Mapping[str, Word]
    """The last value of each option that takes one; a flag stands for itself."""
    unknown: tuple[Word, ...]
    """Options that the program does not have."""


def options_of(program: str) -> Mapping[str, bool]:
    """The options that the program takes, and whether each has a value."""
    return {**DISTRIBUTE_OPTIONS, **LAUNCH_OPTIONS} if program == LAUNCH else DISTRIBUTE_OPTIONS


def launch_lines(script: Script) -> Iterator[LaunchLine]:
    """All calls in a script, values put in place of variables where they are known."""
    for command in script.commands:
        place = command.index_of(LAUNCH, DISTRIBUTE)
        # The text that a shell is given holds blanks; it is read as commands of its own.
        if place is not None and command.texts[0] not in _NOT_RUN and " " not in command.texts[place]:
            yield _read(script, command, place)


def _read(script: Script, command: Command, place: int) -> LaunchLine:
    program = command.texts[place].rpartition("/")[2]
    known = options_of(program)
    places: list[Word] = []
    options: dict[str, Word] = {}
    unknown: list[Word] = []
    is_certain = True
    words = iter(command.words[place + 1 :])
    for word in words:
        name, sign, value = word.text.partition("=")
        if word.text == "--":
            break
        if name in known and sign:
            options[name] = _valued(script, replace(word, text=value))
        elif name in known:
            options[name] = _valued(script, next(words, word)) if known[name] else word
        elif word.is_dynamic and word.is_split:
            is_certain = False
        elif word.text.startswith("-") and word.text not in {"-", "-h"} and not word.is_dynamic:
            unknown.append(word)
        else:
            places.append(_valued(script, word))
    return LaunchLine(
        program,
        command.words[place].line,
        tuple(places) if is_certain and not unknown else (),
        options,
        tuple(unknown),
    )


def _valued(script: Script, word: Word) -> Word:
    value = script.value(word)
    return word if value is None else replace(word, text=value, is_dynamic=False)
