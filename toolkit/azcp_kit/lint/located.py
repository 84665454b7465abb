"""YAML or JSON as a tree in which every value knows its line, built without recursion from bounded input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import yaml
from azcp_runtime.contract import UsageError

from azcp_kit.shown import shown

MOST_LEVELS: Final = 64
MOST_VALUES: Final = 100_000

_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE: Final = frozenset({"true", "yes", "on"})
_FALSE: Final = frozenset({"false", "no", "off"})


@dataclass(frozen=True, slots=True)
class Located:
    """A value and its line; `absent` is what is not there, or null."""

    line: int
    kind: Literal["absent", "scalar", "mapping", "sequence"] = "absent"
    text: str = ""
    plain: bool = False
    block_line: int = 0
    """The line of the first character of a literal block, 0 if the text is no such block."""
    fields: Mapping[str, Located] = field(default_factory=dict)
    items: tuple[Located, ...] = ()
    values: int = 1
    """How many values it holds, aliases counted as often as they are used."""

    def __bool__(self) -> bool:
        return self.kind != "absent"

    def at(self, *path: str) -> Located:
        """The value under a path of keys; absent, on the line of the nearest key, where there is none."""
        found = self
        for key in path:
            found = found.fields.get(key) or Located(found.line)
        return found

    @property
    def number(self) -> int | None:
        """The whole number that it is, decimal or octal as modes are written."""
        text = self.text.replace("_", "")
        if self.kind != "scalar" or not text.isascii() or len(text) > 20:  # noqa: PLR2004 - longer than 2**63
            return None
        octal = text.removeprefix("0o") if text.startswith("0o") else text[1:] if text[:1] == "0" else ""
        try:
            return int(octal, 8) if octal else int(text)
        except ValueError:
            return None

    @property
    def is_true(self) -> bool:
        """Whether it is the boolean true, or a text that says so."""
        return self.kind == "scalar" and self.text.lower() in _TRUE

    @property
    def is_false(self) -> bool:
        """Whether it is the boolean false, or a text that says so."""
        return self.kind == "scalar" and self.text.lower() in _FALSE

    def scalars(self) -> Iterator[tuple[str, Located]]:
        """Every scalar below, with the key that it stands under."""
        waiting: list[tuple[str, Located]] = [("", self)]
        while waiting:
            key, value = waiting.pop()
            if value.kind == "scalar":
                yield key, value
            waiting.extend((key, item) for item in reversed(value.items))
            waiting.extend(reversed(tuple(value.fields.items())))


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of a text, and the keys that stand twice in one mapping."""

    documents: tuple[Located, ...]
    duplicates: tuple[tuple[int, str], ...]


def parse_documents(text: str, first_line: int = 1) -> Documents:
    """Read all documents of a text.

    Args:
        text: YAML, or JSON.
        first_line: the line that the text begins at, where it is a part of a file.

    Raises:
        UsageError: it is neither, or it is larger than any manifest.
    """
    # A tab is white space in JSON; inside a text of JSON it is written as an escape.
    plain = text.replace("\t", " ") if text.lstrip()[:1] in {"{", "["} else text
    builder = _Builder(first_line)
    try:
        for event in yaml.parse(plain, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            builder.take(event)
    except yaml.YAMLError as error:
        raise _syntax_error(error, first_line, text) from None
    return Documents(tuple(builder.documents), tuple(builder.duplicates))


def _syntax_error(error: yaml.YAMLError, first_line: int, text: str) -> UsageError:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read"
    line = f"line {mark.line + first_line}: " if mark is not None else ""
    is_template = "{{" in text
    return UsageError(
        f"{line}this is not YAML: {shown(str(problem))}",
        cause="it looks like a template" if is_template else "",
        remedy="render it first, such as with `helm template`" if is_template else "",
    )


@dataclass(slots=True)
class _Open:
    """A mapping or a sequence whose end has not come yet."""

    line: int
    is_mapping: bool
    anchor: str | None
    children: list[Located] = field(default_factory=list)


class _Builder:
    """Takes the parser's events one by one; the stack is a list, so that nesting costs no recursion."""

    def __init__(self, first_line: int) -> None:
        self._first_line = first_line
        self._open: list[_Open] = []
        self._anchors: dict[str, Located] = {}
        self._values = 0
        self.documents: list[Located] = []
        self.duplicates: list[tuple[int, str]] = []

    def take(self, event: yaml.Event) -> None:
        line = (event.start_mark.line if event.start_mark else 0) + self._first_line
        if isinstance(event, yaml.DocumentStartEvent):
            self._anchors.clear()
        elif isinstance(event, yaml.ScalarEvent):
            self._deliver(_scalar(event, line), event.anchor)
        elif isinstance(event, yaml.AliasEvent):
            self._deliver(self._anchored(event.anchor, line), None)
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            if len(self._open) >= MOST_LEVELS:
                raise UsageError(f"line {line}: more than {MOST_LEVELS} levels, no manifest has so many")
            self._open.append(_Open(line, isinstance(event, yaml.MappingStartEvent), event.anchor))
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            done = self._open.pop()
            self._deliver(self._mapping(done) if done.is_mapping else _sequence(done), done.anchor)

    def _anchored(self, anchor: str | None, line: int) -> Located:
        known = self._anchors.get(anchor or "")
        if known is None:
            raise UsageError(
                f"line {line}: alias {shown(anchor or '')} stands for nothing complete before it"
            )
        return known

    def _deliver(self, value: Located, anchor: str | None) -> None:
        self._values += 1
        if max(self._values, value.values) > MOST_VALUES:
            raise UsageError(
                f"line {value.line}: more than {MOST_VALUES} values", cause="aliases count as often as used"
            )
        if anchor:
            self._anchors[anchor] = value
        if self._open:
            self._open[-1].children.append(value)
        else:
            self.documents.append(value)

    def _mapping(self, done: _Open) -> Located:
        fields: dict[str, Located] = {}
        merged: list[Located] = []
        for key, value in zip(done.children[::2], done.children[1::2], strict=True):
            if key.text == "<<" and key.plain:
                merged.extend(value.items or (value,))
                continue
            if key.text in fields:
                self.duplicates.append((key.line, key.text))
            # What a reader looks for is the key, not the first line below it.
            fields[key.text] = replace(value, line=key.line)
        for other in merged:
            fields = {**other.fields, **fields}
        values = 1 + sum(value.values for value in fields.values())
        return Located(done.line, "mapping", fields=fields, values=values)


def _sequence(done: _Open) -> Located:
    values = 1 + sum(item.values for item in done.children)
    return Located(done.line, "sequence", items=tuple(done.children), values=values)


def _scalar(event: yaml.ScalarEvent, line: int) -> Located:
    plain = event.style in {None, ""}
    if plain and event.value in _NULL:
        return Located(line)
    # Only a literal block keeps its lines; a folded one has them joined.
    block_line = line + 1 if event.style == "|" else 0
    return Located(line, "scalar", event.value, plain=plain, block_line=block_line)
