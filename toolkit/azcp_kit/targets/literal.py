"""Values that reach a container as they are: Kubernetes and Argo expand some texts that look harmless."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

# Kubernetes' expansion reads $$ as one dollar and $(NAME) as a variable; every other dollar stays.
_EXPANDED: Final = re.compile(r"\$(?=[$(])")


def literal(text: str) -> str:
    """A word of command, args or env that Kubernetes gives to the container as `text`."""
    return _EXPANDED.sub("$$", text)


def literals(words: Iterable[str]) -> list[str]:
    """The same for an argument list."""
    return [literal(word) for word in words]


def variables(values: Mapping[str, str]) -> list[dict[str, object]]:
    """Environment variables with those very values."""
    return [{"name": name, "value": literal(value)} for name, value in values.items()]
