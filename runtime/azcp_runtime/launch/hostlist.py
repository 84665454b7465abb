"""Host lists as Slurm and parallel shells write them: n[01-16,20].svc stands for seventeen names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Final

from azcp_runtime.contract import UsageError

MOST_HOSTS: Final = 1 << 16
"""One list names no more: a slip of the pen must not fill the memory with names."""

_GROUP: Final = re.compile(r"\[([^\[\]]*)\]")
_SPAN: Final = re.compile(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", re.ASCII)
# An address of IPv6 stands in brackets as well; it has colons, which no range has.
_ADDRESS: Final = re.compile(r"\[[^\[\],-]*:[^\[\],-]*\]")


def expand(text: str) -> list[str]:
    """Every name of a list, in its order; a range counts up and keeps the leading zeros of its first number.

    Raises:
        UsageError: a bracket or a range is wrong, or there are more than MOST_HOSTS names.
    """
    names: list[str] = []
    for entry in entries(text):
        names.extend(_expand_one(entry, MOST_HOSTS - len(names)))
    return names


def entries(text: str) -> list[str]:
    """What stands between the commas that are outside of brackets, without the blanks around it.

    Raises:
        UsageError: a bracket has no partner.
    """
    found, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if depth not in (0, 1):
            break
        if character == "," and not depth:
            found.append(text[start:position])
            start = position + 1
    if depth:
        raise UsageError(f"{_short(text)} has a bracket without its partner", remedy="write node[0-15]")
    return [entry.strip() for entry in (*found, text[start:]) if entry.strip()]


def _expand_one(entry: str, most: int) -> Iterator[str]:
    if _ADDRESS.match(entry):
        return iter((entry,))
    parts = _GROUP.split(entry)  # text and the inside of a group take turns
    groups = [_numbers(inside, entry, most) for inside in parts[1::2]]
    count = 1
    for group in groups:
        count *= len(group)
    if count > most:
        raise _too_many(entry)
    texts = parts[0::2]
    return (
        texts[0] + "".join(number + text for number, text in zip(chosen, texts[1:], strict=True))
        for chosen in product(*groups)
    )


def _numbers(inside: str, entry: str, most: int) -> list[str]:
    numbers: list[str] = []
    for span in inside.split(","):
        match = _SPAN.fullmatch(span)
        if not match:
            raise UsageError(
                f"{_short(entry)}: {span.strip()!r} is neither a number nor a range",
                remedy="write node[0-3,7]",
            )
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise UsageError(
                f"{_short(entry)}: the range {span.strip()} counts down", remedy=f"{last}-{first}"
            )
        if last - first >= most:
            raise _too_many(entry)
        width = len(match[1]) if match[1].startswith("0") else 0
        numbers.extend(f"{number:0{width}}" for number in range(first, last + 1))
    return numbers


def _too_many(entry: str) -> UsageError:
    return UsageError(f"{_short(entry)} stands for more than {MOST_HOSTS} hosts", remedy="look at its ranges")


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:77]}...")  # noqa: PLR2004 - a line of a terminal
