"""Writes documents as YAML with comments for the operator; every text is read back before it is given away.

A comment is a key of its own in the mapping, before the field it speaks of: ``{Comment("why"): None, ...}``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import yaml

from azcp_kit.shown import shown

Document = Mapping[str, Any]

_LONGEST_COMMENT: Final = 200
_PLAIN: Final = re.compile(r"(?:--)?[A-Za-z0-9/][A-Za-z0-9_./@+=,-]*(?::[A-Za-z0-9_./@+=,-]+)*", re.ASCII)
_MARK: Final = "\x01"
_MARKED: Final = re.compile(r'^(\s*(?:- )*)"\\x01\d+": (.*)$', re.MULTILINE)
_LONGEST_LINE: Final = 1 << 30


class Comment(str):
    """A line for the operator; control characters in it are escaped. Equal texts are different comments."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


class ManifestError(AssertionError):
    """What was written does not read back as what was meant: a fault of azcp-kit."""


class _Dumper(yaml.SafeDumper):
    """Block style, without aliases; a text that YAML could take for something else is in double quotes."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the dumper's own signature
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    # The loader of Kubernetes follows YAML 1.1 in part: whatever is not plainly a word is quoted.
    is_plain = bool(_PLAIN.fullmatch(text)) and not _is_number(text) and yaml.safe_load(text) == text
    return dumper.represent_scalar(_STR, text, style=None if is_plain else '"')


def _is_number(text: str) -> bool:
    # 1e3, 0x1f, 1_000 and 12:30 are numbers to one of the readers.
    return text[0].isdigit() and re.fullmatch(r"[0-9][0-9A-Fa-fxXoO_.:eE+-]*", text) is not None


_STR: Final = "tag:yaml.org,2002:str"
_Dumper.add_representer(str, _text)


def manifest_text(documents: Sequence[Document]) -> str:
    """The documents as one YAML text.

    Raises:
        ManifestError: it does not read back as the documents.
    """
    text = "---\n".join(_one(document) for document in documents)
    if list(yaml.safe_load_all(text)) != [without_comments(document) for document in documents]:
        raise ManifestError("a manifest does not read back as it was meant")
    return text


def without_comments(value: Any) -> Any:  # noqa: ANN401 - whatever a document holds
    """The same value as Kubernetes sees it."""
    if isinstance(value, Mapping):
        return {
            str(key): without_comments(item) for key, item in value.items() if not isinstance(key, Comment)
        }
    if isinstance(value, (list, tuple)):
        return [without_comments(item) for item in value]
    return value


def _one(document: Document) -> str:
    comments: list[str] = []
    dumped = yaml.dump(
        _marked(document, comments),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=_LONGEST_LINE,
    )
    remaining = iter(comments)
    # The mark cannot come from a value: there the dumper escapes it, and the quotes around it.
    return _MARKED.sub(lambda match: f"{match[1]}# {next(remaining)}", dumped)


def _marked(value: Any, comments: list[str]) -> Any:  # noqa: ANN401 - whatever a document holds
    """The same with each comment under a key that no document has."""
    if isinstance(value, Mapping):
        found = {}
        for key, item in value.items():
            if isinstance(key, Comment):
                found[f"{_MARK}{len(comments)}"] = ""
                comments.append(shown(key, _LONGEST_COMMENT))
            else:
                found[str(key)] = _marked(item, comments)
        return found
    if isinstance(value, (list, tuple)):
        return [_marked(item, comments) for item in value]
    return value
