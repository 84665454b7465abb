"""Kubernetes' own $(NAME) in commands, arguments and variables, exactly as the kubelet expands it."""

from __future__ import annotations

from collections.abc import Mapping


def expand(text: str, variables: Mapping[str, str]) -> str:
    """The text with $(NAME) replaced where NAME is known; $$ is a dollar that begins nothing.

    A reference to a name that is not known stays as it is, and so does one that is never closed.
    """
    parts: list[str] = []
    position = 0
    while (dollar := text.find("$", position)) >= 0 and dollar + 1 < len(text):
        parts.append(text[position:dollar])
        replacement, position = _reference(text, dollar + 1, variables)
        parts.append(replacement)
    return "".join([*parts, text[position:]])


def _reference(text: str, after: int, variables: Mapping[str, str]) -> tuple[str, int]:
    """What stands for the dollar before `after` and what follows it, and where the text goes on."""
    if text[after] == "$":
        return "$", after + 1
    if text[after] != "(":
        return f"${text[after]}", after + 1
    end = text.find(")", after)
    if end < 0:
        return "$(", after + 1
    name = text[after + 1 : end]
    return variables.get(name, f"$({name})"), end + 1
