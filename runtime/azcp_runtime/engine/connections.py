"""How many connections a rank uses: as few as are as fast as more of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

PERIOD_S: Final = 1.0
"""How long a number is tried before it is judged."""

_STEP: Final = 8
_NOT_SLOWER: Final = 0.97
_FASTER: Final = 1.03
_LONGEST_REST: Final = 16


@dataclass(frozen=True, slots=True)
class Connections:
    """The number in use, and the one that it is compared with.

    Attributes:
        count: connections that may be in use at a time.
        home: the number that has done best so far.
        home_rate: bytes per second with it, when last measured.
        direction: -1 to try fewer, 1 to try more.
        rest: periods to stay at home before the next trial.
        patience: how long the next rest will be.
    """

    count: int
    home: int
    home_rate: float = 0.0
    direction: int = -1
    rest: int = 0
    patience: int = 1

    @classmethod
    def all_of(cls, most: int) -> Connections:
        """To begin with."""
        return cls(most, most)


def tried(state: Connections, bytes_per_s: float, *, fewest: int, most: int) -> Connections:
    """The number for the next period, after one in which all of ``state.count`` were in use.

    One eighth fewer is kept where it costs nothing, for each connection takes memory, and a share of
    the link that a chunk near its end could use; one eighth more where it is faster. After a trial
    that was neither, there is a rest, longer each time.
    """
    if state.count != state.home:
        kept = bytes_per_s > state.home_rate * (_NOT_SLOWER if state.direction < 0 else _FASTER)
        if not kept:
            return replace(
                state,
                count=state.home,
                direction=-state.direction,
                rest=state.patience,
                patience=min(_LONGEST_REST, 2 * state.patience),
            )
        state = replace(state, home=state.count, patience=1)
    if state.rest:
        return replace(state, home_rate=bytes_per_s, rest=state.rest - 1)
    direction = state.direction
    count = _stepped(state.home, direction, fewest, most)
    if count == state.home:
        direction = -direction
        count = _stepped(state.home, direction, fewest, most)
    return replace(state, home_rate=bytes_per_s, direction=direction, count=count)


def _stepped(count: int, direction: int, fewest: int, most: int) -> int:
    return max(min(fewest, most), min(most, count + direction * max(1, count // _STEP)))
