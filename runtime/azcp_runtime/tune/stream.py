"""The fabric's side of the probe: broadcasts on the lanes of the pass, all roots at once, nothing kept."""

from __future__ import annotations

import time
from array import array
from collections.abc import Sequence
from typing import Final

from azcp_runtime.contract import BroadcastError
from azcp_runtime.contract.units import format_size
from azcp_runtime.engine.slots import Slot
from azcp_runtime.mpi.backoff import Backoff
from azcp_runtime.mpi.ranks import OTHERS_PATIENCE, Ranks
from azcp_runtime.plan.budget import Budget
from azcp_runtime.plan.chunks import Lane

_PAGE: Final = 4096
_NAMED: Final = 4
_BEAT_S: Final = 1.0
"""So old may the last sign of life be of a rank that has stopped just now."""


class Stream:
    """The lanes of this rank's rail.

    Args:
        ranks: the world.
        lanes: the plan's lanes of this rail.
        stall_timeout_s: after so many seconds without a broadcast the run fails.
    """

    def __init__(self, ranks: Ranks, lanes: Sequence[Lane], stall_timeout_s: float) -> None:
        self._ranks = ranks
        seat = ranks.seat
        self._owners = [lane.owner for lane in lanes]
        self._fabric = ranks.open_lanes([owner // seat.rails for owner in self._owners])
        self._patience_s = _BEAT_S + stall_timeout_s * (1 if seat.rank == 0 else OTHERS_PATIENCE)

    def close(self) -> None:
        """Give the lanes back."""
        self._fabric.close()

    def measure(self, budget: Budget, count: int) -> float:
        """Seconds that the slowest rank takes for so many chunks in each lane. On all ranks.

        Raises:
            BroadcastError: a broadcast did not end.
        """
        slots = self._slots(budget, count)
        self._ranks.barrier()
        began = time.monotonic_ns()
        self._carry(slots, count)
        return self._ranks.reduce(array("Q", [time.monotonic_ns() - began]), "max")[0] / 1e9

    def _slots(self, budget: Budget, count: int) -> list[Slot]:
        shape = Lane(0, budget.chunk_bytes, 0, count, budget.chunk_bytes)
        slots = []
        for index, owner in enumerate(self._owners):
            depth = budget.own_slots if owner == self._ranks.seat.index else budget.lane_slots
            slots += [Slot(index, shape) for _ in range(min(depth, count))]
        for slot in slots:  # the kernel gives the pages now, not within the time that is measured
            slot.message[::_PAGE] = bytes(-(-len(slot.message) // _PAGE))
        return slots

    def _carry(self, slots: list[Slot], count: int) -> None:
        left = [count] * len(self._owners)
        missing, moved_at, backoff = sum(left), time.monotonic(), Backoff()
        ready = slots
        while missing:
            for slot in ready:
                if left[slot.lane]:
                    left[slot.lane] -= 1
                    self._fabric.post(slot.lane, slot)
            ready = self._fabric.completed()
            missing -= len(ready)
            if ready:
                moved_at = time.monotonic()
                backoff.moved()
            else:
                self._check(time.monotonic() - moved_at, slots)
                backoff.nap()

    def _check(self, waited_s: float, slots: Sequence[Slot]) -> None:
        if waited_s < self._patience_s:
            return
        named = self._ranks.seat.named
        silent = ", ".join(named(rank) for rank in self._fabric.silent()[:_NAMED])
        waits_for = f"no sign of life from {silent}" if silent else "no broadcast ended"
        raise BroadcastError(
            f"tuning with broadcasts of {format_size(len(slots[0].message))}: "
            f"{waits_for} for {self._patience_s:.0f} s",
            cause="a stopped process or a cut link",
            remedy="look at that node; --stall-timeout sets the limit, --bcast-tune off leaves this out",
        )
