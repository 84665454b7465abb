"""Which known word is meant by one that is not known: other letter case, or one or two letters away."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

LONGEST: Final = 60
"""No known word is longer."""

_ONE_EDIT: Final = 4
_TWO_EDITS: Final = 6


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that `word` is a slip of, "" if it is none."""
    if len(word) > LONGEST:
        return ""
    best, fewest = "", 3
    for candidate in known:
        edits = _edits(word.casefold(), candidate.casefold())
        longest = max(len(word), len(candidate))
        allowed = 2 if longest >= _TWO_EDITS else 1 if longest >= _ONE_EDIT else 0
        if edits < fewest and edits <= allowed:
            best, fewest = candidate, edits
    return best


def _edits(one: str, other: str) -> int:
    """Letters put in, left out, changed or swapped with the next; 3 stands for more than two."""
    if one == other:
        return 0
    # Each edit adds or takes away at most two letters of the alphabet; most words end here.
    if abs(len(one) - len(other)) > 2 or len(set(one) ^ set(other)) > 4:  # noqa: PLR2004 - two edits
        return 3
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, wanted in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and wanted == one[i - 2]:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return min(row[-1], 3)
