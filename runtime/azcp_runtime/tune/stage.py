"""[tune]: chunk and window of the pass, from a probe of at most two seconds where the data set is large."""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from azcp_runtime.contract import STATE_DIR, PlanError
from azcp_runtime.doctor.write_trial import write_trial
from azcp_runtime.mpi.ranks import Ranks
from azcp_runtime.options import Options
from azcp_runtime.plan.budget import Budget
from azcp_runtime.plan.chunks import Plan
from azcp_runtime.plan.make import Demand
from azcp_runtime.stages.diff import Destination
from azcp_runtime.tune.choose import (
    MOST_S,
    Trial,
    choose,
    chunks_for,
    ladder,
    limit_s,
    next_step,
    tries,
    trusted_s,
)
from azcp_runtime.tune.stream import Stream

LEAST_BYTES: Final = 4 << 30
"""Of smaller data sets none takes long enough to win back what the probe takes."""

_FIRST_WRITTEN: Final = 4 << 20
_MOST_WRITTEN: Final = 64 << 20
_LONGEST_WRITE_S: Final = 0.2
_UNKNOWN: Final = 1 << 63


@dataclass(frozen=True, slots=True)
class Tuned:
    """What was found.

    Attributes:
        chosen: what the pass is to have.
        default: what the plan had.
        trials: what was measured of it.
        write_rate: bytes per second that the slowest node writes; infinite where it is not known.
        seconds: what it took.
    """

    chosen: Budget
    default: Budget
    trials: tuple[Trial, ...]
    write_rate: float
    seconds: float


def is_wanted(options: Options, nodes: int, total_bytes: int) -> bool:
    """Whether there is anything to be tuned; a chunk that is given is not."""
    if options.bcast_tune == "off" or options.bcast_chunk or options.no_broadcast or nodes == 1:
        return False
    return bool(total_bytes) and (options.bcast_tune == "always" or total_bytes >= LEAST_BYTES)


def tune(
    ranks: Ranks, options: Options, demand: Demand, destination: Destination, plan: Plan, default: Budget
) -> Tuned:
    """Measure and choose, with the same outcome on every rank; all of them call it.

    Args:
        ranks: the world.
        options: the command line, with the memory that all have agreed on.
        demand: what the budgets depend on.
        destination: where files are written.
        plan: with the default; its lanes are what is measured.
        default: the default.

    Raises:
        BroadcastError: a broadcast did not end.
    """
    clock = _Clock(ranks)
    write_rate = _write_rate(ranks, destination)
    seat = ranks.seat
    mine = [lane for lane in plan.lanes if lane.owner % seat.rails == seat.rail]
    stream = Stream(ranks, mine, options.stall_timeout)
    trials = _Trials(stream, clock, len(plan.lanes))

    def make(size: int, depth: int | None) -> Budget | None:
        if options.shard_size and options.shard_size % size:
            return None
        try:
            return demand.budget(options.memory or 0, size, depth)
        except PlanError:
            return None

    if trials.climb(default):
        total = sum(lane.total_bytes for lane in plan.lanes)
        most_s = MOST_S if options.bcast_tune == "always" else limit_s(total, trials.done[0].rate)
        for budget in tries(default, trials.done, demand.share, make, depth=options.bcast_pipeline):
            trials.attempt(budget, most_s)
    stream.close()
    return Tuned(
        choose(default, trials.done, write_rate), default, tuple(trials.done), write_rate, clock.passed_s()
    )


class _Clock:
    """Seconds since the first rank began, the same on every rank; all of them ask together."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        self._began = time.monotonic_ns()

    def passed_s(self) -> float:
        return self._ranks.reduce(array("Q", [time.monotonic_ns() - self._began]), "max")[0] / 1e9


class _Trials:
    """What was tried so far, and the rate of the last."""

    def __init__(self, stream: Stream, clock: _Clock, lanes: int) -> None:
        self._stream = stream
        self._clock = clock
        self._lanes = lanes
        self._rate = self._last_s = 0.0
        self.done: list[Trial] = []

    def climb(self, default: Budget) -> bool:
        """Find out how fast the fabric is about, and try the default; False where that takes too long."""
        steps: Sequence[Budget] = ladder(default)
        self._measure(steps[0], 1)  # the first messages make the connections
        self._measure(steps[0], 1)
        while found := self._next_of(steps):
            (step, *steps), count = found
            trial = self._measure(step, count)
            if not steps:
                self.done.append(trial)
                return True
        return False

    def _next_of(self, steps: Sequence[Budget]) -> tuple[Sequence[Budget], int] | None:
        left_s = min(MOST_S - self._clock.passed_s(), trusted_s(self._last_s))
        return next_step(steps, self._lanes, self._rate, left_s, self._stream.fresh_bytes)

    def attempt(self, budget: Budget, most_s: float) -> None:
        """Try this if there is time."""
        count = chunks_for(
            budget,
            self._lanes,
            self._rate,
            most_s - self._clock.passed_s(),
            fresh_bytes=self._stream.fresh_bytes(budget),
            least_bytes=self.done[0].moved_bytes,
        )
        if count:
            self.done.append(self._measure(budget, count))

    def _measure(self, budget: Budget, count: int) -> Trial:
        seconds = self._stream.measure(budget, count)
        trial = Trial(budget, count * self._lanes * budget.chunk_bytes, seconds)
        self._rate, self._last_s = trial.rate, seconds
        return trial


def _write_rate(ranks: Ranks, destination: Destination) -> float:
    """Bytes per second that the slowest node writes, its ranks together; infinite where one cannot tell."""
    rails, rate = ranks.seat.rails, _UNKNOWN
    # A disk that is full or refuses is told when it is written to in earnest.
    with suppress(OSError):
        rate = _written(ranks, destination, _FIRST_WRITTEN)
        # A slow disk has had enough with that.
        size = min(_MOST_WRITTEN // rails, int(rate * _LONGEST_WRITE_S))
        rate = _written(ranks, destination, size) if size > _FIRST_WRITTEN else rate
    slowest = ranks.reduce(array("Q", [rate]), "min")[0]
    return math.inf if slowest == _UNKNOWN else float(slowest * rails)


def _written(ranks: Ranks, destination: Destination, size: int) -> int:
    folder, direct = destination.path / STATE_DIR, destination.direct
    return write_trial(folder, size, ranks.hear, direct=direct, longest_s=_LONGEST_WRITE_S)
