"""Facts as JSON and back: the file that `inspect --facts` writes and `render --facts` reads."""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from azcp_runtime.contract import UsageError

from azcp_kit.inspect.facts import ImageFacts
from azcp_kit.shown import shown

SCHEMA: Final = 1
CONCLUSION: Final = "conclusion"
"""What follows from the facts; written for readers, and not read back."""

T = TypeVar("T")


def to_json(facts: ImageFacts, conclusion: Mapping[str, object] | None = None) -> str:
    """The facts, and what follows from them where it is given; ASCII, so that any terminal may show it."""
    document: dict[str, object] = {"schema": SCHEMA, **dataclasses.asdict(facts)}
    if conclusion is not None:
        document[CONCLUSION] = conclusion
    return json.dumps(document, indent=2) + "\n"


def write_facts(path: Path, text: str) -> None:
    """Write what `to_json` gave.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{shown(str(path))} cannot be written", cause=error.strerror or "") from error


def read_facts(path: Path) -> ImageFacts:
    """The facts in a file.

    Raises:
        UsageError: it cannot be read, or holds something else.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{shown(str(path))} cannot be read", cause=error.strerror or "") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{shown(str(path))} is no file of facts", cause="it is no text") from error
    return from_json(text)


def from_json(text: str) -> ImageFacts:
    """The facts in a text that `to_json` made.

    Raises:
        UsageError: it is something else, or of another release.
    """
    try:
        document = json.loads(text)
        schema = document.pop("schema")
        document.pop(CONCLUSION, None)
        _expect_schema(schema)
        return _record(ImageFacts, document, "facts")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise UsageError(
            "this is no file of facts that can be read",
            cause=shown(f"{type(error).__name__}: {error}"),
            remedy="make it again with `azcp-kit inspect IMAGE --facts FILE`",
        ) from error


def _expect_schema(schema: object) -> None:
    if schema != SCHEMA:
        raise ValueError(f"it has schema {schema!r}, and this release reads {SCHEMA}")


def _record(kind: type[T], value: object, where: str) -> T:
    if not isinstance(value, dict):
        raise TypeError(f"{where} is no object")
    hints = get_type_hints(kind)
    if wrong := sorted(hints.keys() ^ value.keys()):
        raise ValueError(f"{where} has not exactly the fields of this release: {', '.join(wrong)}")
    return kind(**{name: _value(hint, value[name], f"{where}.{name}") for name, hint in hints.items()})


def _value(hint: object, value: object, where: str) -> object:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is tuple and isinstance(value, list):
        return tuple(_value(arguments[0], item, where) for item in value)
    if origin is Mapping and isinstance(value, dict):
        return {name: _value(arguments[1], item, where) for name, item in value.items()}
    if origin in (Union, types.UnionType):
        return None if value is None else _value(arguments[0], value, where)
    if dataclasses.is_dataclass(hint):
        return _record(cast("type[object]", hint), value, where)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return hint(str(value))
    # A bool is an int for Python, and none for JSON.
    if isinstance(hint, type) and type(value) is hint:
        return value
    raise TypeError(f"{where} is a {type(value).__name__}")
