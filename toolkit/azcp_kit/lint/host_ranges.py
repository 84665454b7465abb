"""Hosts written as ranges, such as `llama-[0-3,7].nodes`, one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

MOST_HOSTS: Final = 5000
"""As many nodes as one cluster of Kubernetes has."""

_HOST: Final = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")
_RANGE: Final = re.compile(r"([^\[\]]*)\[([^\[\]]*)\]([^\[\]]*)")
_PART: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


@lru_cache(maxsize=8)
def hosts_in(text: str) -> tuple[str, ...] | None:
    """The hosts; None where it is no such list, or longer than any."""
    found: list[str] = []
    for match in _HOST.finditer(text):
        for host in _expanded(match[0].strip()):
            if host is None or len(found) >= MOST_HOSTS:
                return None
            found.append(host)
    return tuple(found) or None


def _expanded(host: str) -> Iterator[str | None]:
    if "[" not in host:
        yield host
        return
    whole = _RANGE.fullmatch(host)
    for part in whole[2].split(",") if whole else ("",):
        numbers = _PART.fullmatch(part.strip())
        if whole is None or numbers is None:
            yield None
            return
        first, last = int(numbers[1]), int(numbers[2] or numbers[1])
        for number in range(first, last + 1):
            yield f"{whole[1]}{number:0{len(numbers[1])}d}{whole[3]}"
