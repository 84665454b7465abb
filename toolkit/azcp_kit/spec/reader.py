"""Reads one table of a job.toml: each key once, by its type; what is left over or wrong becomes a problem."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from azcp_kit.shown import shown
from azcp_kit.spec.names import any_text
from azcp_kit.spec.problems import Problem
from azcp_kit.spec.secrets import may_be_secret

_LARGEST: Final = 2**31 - 1
_TYPES: Final = {
    bool: "true or false",
    str: "a text",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a table",
}

_EXAMPLES: Final[Mapping[type, str]] = {
    list: 'write ["a", "b"]',
    dict: 'write { key = "value" }',
    str: "put it in quotes",
}

Check = Callable[[str], str]
"""What is wrong with a text; empty where nothing is."""


class Reader:
    """One table.

    A value that is wrong is replaced by the default, so that the rest can be checked too.
    """

    def __init__(self, table: Mapping[str, Any], problems: list[Problem], path: str = "") -> None:
        """Begin.

        Args:
            table: as tomllib gives it.
            problems: where they are collected.
            path: the dotted name of the table; empty for the file.
        """
        self._table = table
        self._problems = problems
        self._path = path
        self._known: list[str] = []

    def text(
        self,
        key: str,
        default: str = "",
        *,
        check: Check | None = None,
        needed: bool = False,
        secret: bool = False,
    ) -> str:
        """A text in which no control character is; one that may be a secret is not shown."""
        value: str | None = self._take(key, str)
        if not value:  # an empty text stands for none
            if needed and key not in self._wrong():
                self.problem(key, "is missing" if value is None else "is empty")
            return default
        what = "has a control character in it" if _is_control(value) else check(value) if check else ""
        if what:
            self.problem(key, f"{'what it says' if secret else _quoted(value)} {what}")
            return default
        return value

    def choice(self, key: str, known: Sequence[str], default: str) -> str:
        """One of the known words."""

        def check(value: str) -> str:
            if value in known:
                return ""
            return f"is none of {', '.join(known)}{_nearest(value, known)}"

        return self.text(key, default, check=check)

    def whole(
        self, key: str, default: int, *, least: int = 0, most: int = _LARGEST, needed: bool = False
    ) -> int:
        """A whole number in a range."""
        value: int | None = self._take(key, int)
        if value is None:
            if needed and key not in self._wrong():
                self.problem(key, "is missing")
            return default
        if not least <= value <= most:
            self.problem(key, f"{value} is not from {least} to {most}")
            return default
        return value

    def whole_or_word(self, key: str, word: str, *, least: int, most: int) -> int | str | None:
        """A whole number in a range, or the word that may stand for it; None if absent."""
        if self._table.get(key) == word:
            self._known.append(key)
            return word
        if isinstance(self._table.get(key), str):
            self._known.append(key)
            self.problem(key, f'is neither "{word}" nor a whole number')
            return None
        return self.whole(key, 0, least=least, most=most) or None

    def number(self, key: str, default: float, *, least: float, most: float) -> float:
        """A number in a range, with a decimal point or without."""
        is_whole = isinstance(self._table.get(key), int)
        value: float | None = self._take(key, int if is_whole else float)
        if value is None:
            return default
        # Not so written that NaN would pass.
        if not least <= value <= most:
            self.problem(key, f"{value} is not from {least:g} to {most:g}")
            return default
        return float(value)

    def flag(self, key: str) -> bool:
        """True or false; false if absent."""
        return bool(self._take(key, bool))

    def parsed(self, key: str, default: int, parse: Callable[[str], int]) -> int:
        """A size or a time as people write it, by the function that reads it."""

        def check(value: str) -> str:
            try:
                parse(value)
            except ValueError as error:
                return f"is wrong: {error}"
            return ""

        value = self.text(key, check=check)
        return parse(value) if value else default

    def words(self, key: str) -> tuple[str, ...]:
        """A list of texts: an argument list. Line breaks are right in it, NUL is not."""
        found = []
        for at, value in enumerate(self._take(key, list) or ()):
            if not isinstance(value, str):
                self.problem(f"{key}[{at}]", f"is {_kind(value)}, not a text", "put it in quotes")
            elif what := any_text(value):
                self.problem(f"{key}[{at}]", what)
            else:
                found.append(value)
        return tuple(found)

    def texts(self, key: str, check_key: Check, check_value: Check) -> dict[str, str]:
        """A table of texts."""
        found = {}
        for name, value in (self._take(key, dict) or {}).items():
            place = f"{key}.{name}"
            if not isinstance(value, str):
                self.problem(place, f"is {_kind(value)}, not a text", "put it in quotes")
            elif what := check_key(name):
                self.problem(place, f"the name {what}")
            elif what := check_value(value):
                self.problem(place, f"{_quoted(value)} {what}")
            else:
                found[name] = value
        return found

    def table(self, key: str) -> Reader:
        """A table inside this one; an empty one if absent."""
        table = self._take(key, dict)
        # What is no table has no keys that could be missing.
        problems = [] if table is None and self.has(key) else self._problems
        return Reader(table or {}, problems, self._named(key))

    def tables(self, key: str) -> list[Reader]:
        """An array of tables."""
        readers = []
        for at, value in enumerate(self._take(key, list) or ()):
            if isinstance(value, dict):
                readers.append(Reader(value, self._problems, self._named(f"{key}[{at}]")))
            else:
                self.problem(f"{key}[{at}]", f"is {_kind(value)}, not a table")
        return readers

    def has(self, key: str) -> bool:
        """Whether the key is there, right or wrong."""
        return key in self._table

    def problem(self, key: str, what: str, remedy: str = "") -> None:
        """Add one."""
        self._problems.append(Problem(self._named(key), what, remedy))

    def finish(self) -> None:
        """Name the keys that nobody asked for."""
        for key in self._table:
            if key not in self._known:
                self.problem(key, f"is not known{_nearest(key, self._known)}")

    def _take(self, key: str, kind: type) -> Any:  # noqa: ANN401 - of the kind that was asked for
        self._known.append(key)
        value = self._table.get(key)
        if value is None:
            return None
        # In Python true is a whole number too.
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.problem(key, f"is {_kind(value)}, not {_TYPES[kind]}", _EXAMPLES.get(kind, ""))
            return None
        return value

    def _wrong(self) -> set[str]:
        prefix = f"{self._path}." if self._path else ""
        return {problem.key.removeprefix(prefix) for problem in self._problems}

    def _named(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key


def _is_control(text: str) -> bool:
    return any(ord(character) < ord(" ") or character == "\x7f" for character in text)


def _quoted(text: str) -> str:
    """For a message; what looks like a secret is not shown."""
    return "what it says" if may_be_secret(text) else shown(json.dumps(text, ensure_ascii=False), 80)


def _kind(value: object) -> str:
    return next((name for kind, name in _TYPES.items() if isinstance(value, kind)), "a date")


def _nearest(word: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(word.lower().replace("_", "-"), known, 1, 0.5)
    return f"; did you mean {close[0]}?" if close else ""
