"""What the probe tries, for how long, and what it chooses; pure, so that every rank decides the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from azcp_runtime.plan.budget import Budget
from azcp_runtime.plan.chunks import slot_bytes

MOST_S: Final = 1.7
"""The next trial must fit into this by the rate of the last one; the whole is to stay under 2 s."""

_MOST_OF_PASS: Final = 0.05
"""Of the time that the pass will take; more could not be won back."""

_SIZES: Final = tuple(1 << power for power in (18, 20, 22, 24, 26))
_CHUNKS_PER_SHARE: Final = 32
"""What the last chunk costs is never more than a third of what makes a change worth it."""

_FIRST_STEP: Final = 64 << 10
_STEP: Final = 4
_BETTER: Final = 1.1
_DEEPER: Final = 2
_DEEPEST: Final = 16
_TRIAL_S: Final = 0.12
_GROWTH: Final = 8
_SHORT_S: Final = 0.05
_MOST_BYTES: Final = 4 << 30
_MARGIN: Final = 1.5
_FRESH_RATE: Final = 2 << 30
"""Bytes per second at which a kernel gives pages of 4 KiB; most give them faster."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One measurement.

    Attributes:
        budget: chunk and slots.
        moved_bytes: what each node got of the data set, its own part included.
        seconds: what the slowest rank took.
    """

    budget: Budget
    moved_bytes: int
    seconds: float

    @property
    def rate(self) -> float:
        """Bytes per second."""
        return self.moved_bytes / max(self.seconds, 1e-9)


def ladder(default: Budget) -> list[Budget]:
    """Steps of growing chunks up to the default, on which a rate is found when nothing is known of it."""
    size, steps = _FIRST_STEP, []
    while size < default.chunk_bytes:
        memory = default.memory_bytes * slot_bytes(size) // slot_bytes(default.chunk_bytes)
        steps.append(replace(default, chunk_bytes=size, memory_bytes=memory))
        size *= _STEP
    return [*steps, default]


def next_step(
    steps: Sequence[Budget], lanes: int, rate: float, left_s: float, fresh_bytes: Callable[[Budget], int]
) -> tuple[Sequence[Budget], int] | None:
    """The highest step for which there is time with those above it, and its chunks; None for none."""
    for at in reversed(range(len(steps))):
        if count := chunks_for(steps[at], lanes, rate, left_s, fresh_bytes=fresh_bytes(steps[at])):
            return steps[at:], count
    return None


def tries(
    default: Budget,
    done: Sequence[Trial],
    share: int,
    make: Callable[[int, int | None], Budget | None],
    *,
    depth: int | None,
) -> Iterator[Budget]:
    """What is to be tried next, in this order, as long as there is time.

    Args:
        default: what the plan has, and what was tried last.
        done: what was tried; grows meanwhile.
        share: bytes of the largest owner.
        make: the budget of a chunk size and a depth (found when None); None where it does not fit.
        depth: --bcast-pipeline.
    """
    if done[-1].seconds < _TRIAL_S:
        yield default
    # Nearest first: those far away are seldom better, and large ones take long.
    for size in sorted(_SIZES, key=lambda size: abs(math.log2(size / default.chunk_bytes))):
        if size != default.chunk_bytes and size * _CHUNKS_PER_SHARE <= share and (found := make(size, depth)):
            yield found
    best = max(done, key=lambda trial: trial.rate).budget
    deeper = min(_DEEPEST, _DEEPER * best.lane_slots)
    if depth is None and deeper > best.lane_slots and (found := make(best.chunk_bytes, deeper)):
        yield found


def chunks_for(
    budget: Budget, lanes: int, rate: float, left_s: float, *, fresh_bytes: int = 0, least_bytes: int = 0
) -> int:
    """How many chunks each lane is to carry in a trial; 0 where the time that is left is too short.

    Args:
        budget: what is tried.
        lanes: of all rails.
        rate: bytes per second of the last trial.
        left_s: the time that is left.
        fresh_bytes: memory that a rank has to take for it.
        least_bytes: what other trials moved: less would be compared with more.
    """
    each = lanes * budget.chunk_bytes
    moving_s = left_s - fresh_bytes / _FRESH_RATE
    least = max(budget.lane_slots, -(-least_bytes // each))
    count = max(least, int(min(_TRIAL_S * rate, moving_s * rate / _MARGIN, _MOST_BYTES)) // each)
    return count if _MARGIN * count * each <= moving_s * rate else 0


def trusted_s(last_s: float) -> float:
    """For how long a trial may be meant to take after one of so many seconds.

    A network that is shaped lets the first bytes through much faster than those that follow.
    """
    return max(_SHORT_S, _GROWTH * last_s)


def limit_s(total_bytes: int, rate: float) -> float:
    """How long the probe may take where so many bytes are to move at about this rate."""
    return min(MOST_S, _MOST_OF_PASS * total_bytes / max(rate, 1e-9))


def choose(default: Budget, trials: Sequence[Trial], write_rate: float = math.inf) -> Budget:
    """The best of what was tried, or the default where nothing is better by a tenth.

    Args:
        default: what the plan has.
        trials: the measurements.
        write_rate: bytes per second that a node writes; more broadcast is no use.
    """
    rates = {budget: min(write_rate, rate) for budget, rate in best_rates(trials).items()}
    if default not in rates:
        return default
    best = max(rates, key=lambda budget: (rates[budget], -budget.memory_bytes))
    return best if rates[best] > _BETTER * rates[default] else default


def best_rates(trials: Sequence[Trial]) -> dict[Budget, float]:
    """The highest rate of each setting, in the order of trying."""
    rates: dict[Budget, float] = {}
    for trial in trials:
        rates[trial.budget] = max(trial.rate, rates.get(trial.budget, 0.0))
    return rates
