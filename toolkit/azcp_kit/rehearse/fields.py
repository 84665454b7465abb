"""Typed access to a parsed document: a field of another type is an error that says which field it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from azcp_runtime.contract import UsageError

from azcp_kit.shown import shown


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping of a document, which may be absent altogether.

    Args:
        raw: the mapping itself.
        where: its place, for errors, such as `Job llama: spec.template`.
    """

    raw: Mapping[str, Any]
    where: str

    def at(self, *names: str) -> Fields:
        """The mapping below; an empty one where it is absent."""
        fields = self
        for name in names:
            value = fields.raw.get(name)
            fields = Fields(mapping(value, fields.path(name)), fields.path(name))
        return fields

    def each(self, name: str) -> tuple[Fields, ...]:
        """The mappings of a list."""
        entries = self._items(name)
        return tuple(
            Fields(mapping(entry, f"{self.path(name)}[{index}]"), f"{self.path(name)}[{index}]")
            for index, entry in enumerate(entries)
        )

    def text(self, name: str, default: str = "") -> str:
        """A string; what YAML reads as a number is not one, as for the API server."""
        value = self.raw.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.error(name, "is no string", f'write "{value}"')
        return value

    def number(self, name: str, default: int) -> int:
        """A whole number that is not negative."""
        value = self.raw.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.error(name, f"is no whole number: {value!r}")
        return value

    def optional_number(self, name: str) -> int | None:
        """The same, or None where it is absent."""
        return None if self.raw.get(name) is None else self.number(name, 0)

    def flag(self, name: str, *, default: bool = False) -> bool:
        """True or false."""
        value = self.raw.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.error(name, f"is neither true nor false: {value!r}")
        return value

    def words(self, name: str) -> tuple[str, ...]:
        """A list of strings."""
        for index, entry in enumerate(self._items(name)):
            if not isinstance(entry, str):
                raise self.error(f"{name}[{index}]", "is no string", f'write "{entry}"')
        return tuple(self._items(name))

    def strings(self, name: str) -> dict[str, str]:
        """A mapping of strings, such as labels."""
        below = self.at(name)
        return {key: below.text(key) for key in below.raw}

    def has(self, name: str) -> bool:
        """Whether it is there, and not null."""
        return self.raw.get(name) is not None

    def path(self, name: str) -> str:
        """The place of a field."""
        return f"{self.where}{'' if self.where.endswith(' ') else '.'}{name}"

    def error(self, name: str, what: str, remedy: str = "") -> UsageError:
        """What is wrong with a field."""
        return UsageError(shown(f"{self.path(name)} {what}"), remedy=shown(remedy))

    def _items(self, name: str) -> list[Any]:
        value = self.raw.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.error(name, "is no list")
        return value


def mapping(value: object, where: str) -> Mapping[str, Any]:
    """The value as a mapping with string keys; an empty one for null.

    Raises:
        UsageError: it is something else.
    """
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise UsageError(shown(f"{where} is no mapping with strings as keys"))
    return value
