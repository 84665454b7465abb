"""Reads a manifest into documents; it may come from anywhere, so its size is bounded in every way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from azcp_runtime.contract import UsageError

from azcp_kit.rehearse.fields import Fields, mapping
from azcp_kit.shown import shown

LONGEST_BYTES: Final = 8 << 20
_MOST_VALUES: Final = 500_000
"""With all aliases expanded: a few lines of them can stand for billions of values."""
DEFAULT_NAMESPACE: Final = "default"


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a manifest.

    Args:
        kind, group: such as `Job` and `batch`; the group is empty for the core one.
        namespace, name: as metadata has them.
        fields: all of it.
    """

    kind: str
    group: str
    namespace: str
    name: str
    fields: Fields

    @property
    def title(self) -> str:
        """What it is called in messages."""
        return f"{self.kind} {self.name}"


def read_documents(text: str) -> tuple[Document, ...]:
    """The objects in a manifest, those of a `List` one by one.

    Raises:
        UsageError: it is neither YAML nor JSON, or no Kubernetes object.
    """
    if len(text.encode(errors="surrogateescape")) > LONGEST_BYTES:
        raise UsageError(f"the manifest has more than {LONGEST_BYTES >> 20} MiB")
    found: list[Document] = []
    for number, value in enumerate(_parsed(text), start=1):
        _expect_bounded(value)
        found.extend(_documents(mapping(value, f"document {number}"), f"document {number}"))
    if not found:
        raise UsageError("the manifest is empty")
    return tuple(found)


def _parsed(text: str) -> Iterator[Any]:
    import yaml

    if text.lstrip()[:1] in ("{", "["):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            pass  # a YAML flow may begin so as well
        else:
            yield from value if isinstance(value, list) else [value]
            return
    try:
        yield from (value for value in yaml.safe_load_all(text) if value is not None)
    except yaml.YAMLError as error:
        raise UsageError("the manifest is no YAML", cause=shown(_first_words(error))) from error
    except (RecursionError, ValueError) as error:
        raise UsageError("the manifest cannot be read", cause=shown(str(error))) from error


def _first_words(error: Exception) -> str:
    problem = getattr(error, "problem", None) or str(error)
    mark = getattr(error, "problem_mark", None)
    return f"line {mark.line + 1}: {problem}" if mark else str(problem)


def _expect_bounded(value: object) -> None:
    # A mapping that holds itself, which an alias can make, never ends: it reaches the limit as well.
    seen, left = 0, [value]
    while left:
        value = left.pop()
        seen += 1
        if seen > _MOST_VALUES:
            raise UsageError(f"the manifest has more than {_MOST_VALUES} values with its aliases expanded")
        if isinstance(value, dict):
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)


def _documents(raw: Any, where: str) -> Iterator[Document]:  # noqa: ANN401 - as the parser gives it
    fields = Fields(raw, where)
    kind = fields.text("kind")
    if kind == "List" or kind.endswith("List"):
        for item in fields.each("items"):
            yield from _documents(item.raw, item.where)
        return
    if not kind:
        raise UsageError(f"{where} has no kind", remedy="give a Kubernetes manifest")
    group, slash, _ = fields.text("apiVersion").partition("/")
    metadata = fields.at("metadata")
    name = metadata.text("name") or metadata.text("generateName").rstrip("-")
    namespace = metadata.text("namespace") or DEFAULT_NAMESPACE
    title = f"{shown(kind)} {shown(name)}: "
    yield Document(kind, group if slash else "", namespace, name, Fields(raw, title))
