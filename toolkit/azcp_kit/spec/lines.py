"""On which line of a TOML file each key is; the standard parser does not say."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Final

_BARE: Final = r"[A-Za-z0-9_-]+"
_NAME: Final = rf"""(?:{_BARE}|"(?:[^"\\]|\\.)*"|'[^']*')"""
_DOTTED: Final = rf"{_NAME}(?:[ \t]*\.[ \t]*{_NAME})*"
_TABLE: Final = re.compile(rf"[ \t]*\[(\[)?[ \t]*({_DOTTED})[ \t]*\]")
_KEY: Final = re.compile(rf"[ \t]*({_DOTTED})[ \t]*=")
_PART: Final = re.compile(_NAME)
# A string or a comment, whichever begins first: brackets in either are text.
_SKIPPED: Final = re.compile(
    r'''
    """(?:[^\\]|\\.)*?"{3,5}   # a basic string of several lines; two quotes may stand before its end
    | \'{3}.*?\'{3,5}          # a literal one
    | "(?:[^"\\\n]|\\.)*"     # a basic string
    | \'[^\'\n]*\'             # a literal one
    | \#[^\n]*                # a comment
    ''',
    re.DOTALL | re.VERBOSE,
)

_INSIDE: Final = "\0"  # TOML has no NUL


def key_lines(text: str) -> Mapping[str, int]:
    """The line, from 1, of each table and key by its dotted name; entries of an array of tables are counted.

    The text must be TOML that the standard parser takes.
    """
    found: dict[str, int] = {}
    counts: dict[str, int] = {}
    table: tuple[str, ...] = ()
    for number, line in _statements(text):
        if match := _TABLE.match(line):
            table = _parts(match[2])
            if match[1]:
                name = ".".join(table)
                table = (*table[:-1], f"{table[-1]}[{counts.get(name, 0)}]")
                counts[name] = counts.get(name, 0) + 1
                found.setdefault(name, number)
            found.setdefault(".".join(table), number)
        elif match := _KEY.match(line):
            path = (*table, *_parts(match[1]))
            for depth in range(len(table) + 1, len(path) + 1):
                found.setdefault(".".join(path[:depth]), number)
    return found


def line_of(lines: Mapping[str, int], key: str) -> int | None:
    """The line of a key, or of the nearest that holds it: an inline table has one line."""
    while key:
        if key in lines:
            return lines[key]
        key = key.removesuffix("]").rpartition("[")[0] if key.endswith("]") else key.rpartition(".")[0]
    return None


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Lines on which a statement can begin: not those inside a string or an array."""
    depth = 0
    for number, (line, plain) in enumerate(zip(text.split("\n"), _plain(text).split("\n"), strict=True), 1):
        if depth == 0 and not plain.startswith(_INSIDE):
            yield number, line
        if depth or not _TABLE.match(line):
            depth += sum(plain.count(opening) for opening in "[{") - sum(plain.count(c) for c in "]}")


def _plain(text: str) -> str:
    """The text, its strings and comments blanked; a line that begins inside a string begins with a mark."""
    return _SKIPPED.sub(
        lambda match: "".join(f"\n{_INSIDE}" if character == "\n" else "." for character in match[0]), text
    )


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(_name(part) for part in _PART.findall(dotted))


def _name(part: str) -> str:
    return next(iter(tomllib.loads(f"{part} = 0"))) if part[0] in "\"'" else part
