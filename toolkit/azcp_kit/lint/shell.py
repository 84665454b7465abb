"""A shell script cut into commands whose words know their lines; a careful reading, no evaluation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from azcp_kit.lint.shell_words import Scanner, Word

MOST_LEVELS: Final = 4
"""How deep `bash -c` inside `bash -c` is read."""

_SHELLS: Final = frozenset({"bash", "sh", "dash", "zsh"})
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)
_VARIABLE: Final = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::?-([^{}$]*))?\})")
_NOT_RUN: Final = frozenset(
    {"echo", "printf", "which", "type", "command", "grep", "pgrep", "pkill", "killall", "test", "[", "[["}
)
_DECLARING: Final = frozenset({"export", "local", "readonly", "declare", "typeset"})


@dataclass(frozen=True, slots=True)
class Command:
    """The words of one simple command, redirections left out, arrays put in place."""

    words: tuple[Word, ...]
    within: Command | None = None
    """The command whose argument this one is a part of, as in `srun bash -c '...'`."""

    @property
    def line(self) -> int:
        """Where it begins."""
        return self.words[0].line

    @property
    def texts(self) -> tuple[str, ...]:
        """The words without their lines."""
        return tuple(word.text for word in self.words)

    def index_of(self, *programs: str) -> int | None:
        """Where one of the programs is run, also behind `exec`, `timeout 60`, `srun ...`."""
        if self.texts[0] in _NOT_RUN:
            return None
        # A path among the arguments is a program only in a folder of programs: /run/sshd is none.
        for place, text in enumerate(self.texts):
            folder, _, name = text.rpartition("/")
            if name in programs and (not folder or not place or folder.endswith("bin")):
                return place
        return None

    def runs(self, *programs: str) -> bool:
        """Whether one of the programs is run."""
        return self.index_of(*programs) is not None

    def option(self, *names: str) -> Word | None:
        """The value of the first of these options, as `--name value` or `--name=value`.

        The first, since what follows the program's own name are another program's options.
        """
        for word, value in self.options(*names):
            return value or replace(word, text="")
        return None

    def options(self, *names: str) -> Iterator[tuple[Word, Word | None]]:
        """Each use of the options, with its value; None for one that is the last word."""
        for place, word in enumerate(self.words):
            name, sign, value = word.text.partition("=")
            if name in names and sign:
                yield word, replace(word, text=value)
            elif word.text in names:
                yield word, self.words[place + 1] if place + 1 < len(self.words) else None

    def assignments(self) -> Iterator[tuple[str, Word]]:
        """What the command sets itself: `A=b`, `A=b command`, `export A=b`."""
        for word in self.words:
            match = _ASSIGNMENT.fullmatch(word.text)
            if match:
                yield match[1], replace(word, text=match[2])
            elif word.text not in _DECLARING and not word.text.startswith("-"):
                return


@dataclass(frozen=True, slots=True)
class Script:
    """The commands of a script, those inside `bash -c` after the one that runs them."""

    commands: tuple[Command, ...] = ()
    text: str = ""
    variables: Mapping[str, str | None] = field(default_factory=dict)
    """Variables with the one value that they ever get; None for all others."""

    def value(self, word: Word) -> str | None:
        """What the word is when the script runs; None if only the run can tell."""
        if not word.is_dynamic:
            return word.text
        unknown = False

        def expand(match: re.Match[str]) -> str:
            nonlocal unknown
            value = self.variables.get(match[1] or match[2], match[3])
            unknown = unknown or value is None
            return value or ""

        text = _VARIABLE.sub(expand, word.text)
        return None if unknown or "$" in text or "`" in text else text


def parse_script(text: str, first_line: int = 1, *, one_line: bool = False) -> Script:
    """Read a script.

    Args:
        text: the script.
        first_line: the line of its first character in the file.
        one_line: its lines are not those of the file, so all of it is said to be on the first.
    """
    commands = tuple(_commands(text, first_line, one_line=one_line, within=None, level=0))
    return Script(commands, text, _variables(commands))


def parse_argv(words: tuple[Word, ...]) -> Script:
    """Read an argument list as a script of one command, and what a shell in it is given."""
    if not words:
        return Script()
    command = Command(words)
    commands = (command, *_inner(command, one_line=True, level=0))
    return Script(commands, "\n".join(command.texts), _variables(commands))


def _variables(commands: tuple[Command, ...]) -> dict[str, str | None]:
    values: dict[str, str | None] = {}
    for command in commands:
        for name, word in command.assignments():
            default = _VARIABLE.fullmatch(word.text)
            own = default[3] if default and (default[1] or default[2]) == name else None
            text = own if own is not None else None if word.is_dynamic else word.text
            values[name] = text if values.get(name, text) == text else None
    return values


def _commands(
    text: str, first_line: int, *, one_line: bool, within: Command | None, level: int
) -> Iterator[Command]:
    scanner = Scanner(text, first_line, one_line=one_line)
    for words in scanner.commands():
        command = Command(tuple(scanner.with_arrays(words)), within)
        if command.words:
            yield command
            yield from _inner(command, one_line=one_line, level=level + 1)


def _inner(command: Command, *, one_line: bool, level: int) -> Iterator[Command]:
    """The commands inside the text that a shell in `command` is given."""
    place = command.index_of(*_SHELLS)
    if place is None or level > MOST_LEVELS:
        return
    for option, word in zip(command.words[place + 1 :], command.words[place + 2 :], strict=False):
        if not option.text.startswith("-"):
            return
        if re.fullmatch(r"-[a-z]*c", option.text):
            yield from _commands(word.text, word.line, one_line=one_line, within=command, level=level)
            return
