"""How many connections a rank uses: as few as are as fast as any number was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PERIOD_S: Final = 1.0
"""How long a number is tried before it is judged."""

_SAME: Final = 0.95
_FORGET: Final = 0.98
_STEP: Final = 8


@dataclass(frozen=True, slots=True)
class Connections:
    """The number in use and what is known of others.

    Attributes:
        count: connections that may be in use at a time.
        best: the highest rate seen, in bytes per second; it fades, for the network changes.
    """

    count: int
    best: float = 0.0


def tried(state: Connections, bytes_per_s: float, *, fewest: int, most: int) -> Connections:
    """The number to try next, after one period in which all of them were in use.

    One eighth fewer as long as that costs nothing, for each connection costs memory and a share of
    the link that a chunk near its end could use; one eighth more where it was slower than the best.
    """
    step = max(1, state.count // _STEP)
    best = max(bytes_per_s, state.best * _FORGET)
    slower = bytes_per_s < _SAME * best
    count = state.count + step if slower else state.count - step
    return Connections(max(min(fewest, most), min(most, count)), best)
