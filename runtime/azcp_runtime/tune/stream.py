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
        self._held: Budget | None = None
        self._slots: list[list[Slot]] = []
        self._patience_s = _BEAT_S + stall_timeout_s * (1 if seat.rank == 0 else OTHERS_PATIENCE)

    def close(self) -> None:
        """Give the lanes back."""
        self._fabric.close()

    def measure(self, budget: Budget, count: int) -> float:
        """Seconds that the slowest rank takes for so many chunks in each lane. On all ranks.

        Raises:
            BroadcastError: a broadcast did not end.
        """
        slots = self._slots_for(budget)
        self._ranks.barrier()
        began = time.monotonic_ns()
        self._carry(slots, count)
        return self._ranks.reduce(array("Q", [time.monotonic_ns() - began]), "max")[0] / 1e9

    def fresh_bytes(self, budget: Budget) -> int:
        """What has to be allocated for it; the same on every rank. Nothing where what is held is enough."""
        held = self._held
        enough = (
            held is not None
            and budget.chunk_bytes <= held.chunk_bytes
            and budget.own_slots <= held.own_slots
            and budget.lane_slots <= held.lane_slots
        )
        return 0 if enough else budget.memory_bytes

    def _slots_for(self, budget: Budget) -> list[Slot]:
        """The budget's slots; they are kept for what needs no more."""
        if self.fresh_bytes(budget):
            self._slots.clear()  # before others are taken: together they would be too much
            shape = Lane(0, budget.chunk_bytes, 0, 1, budget.chunk_bytes)
            for index in range(len(self._owners)):
                self._slots.append([_touched(index, shape) for _ in range(self._depth(budget, index))])
            self._held = budget
        taken = [
            slot for index, lane in enumerate(self._slots) for slot in lane[: self._depth(budget, index)]
        ]
        for slot in taken:
            slot.message = slot.payload[: budget.chunk_bytes]
        return taken

    def _depth(self, budget: Budget, lane: int) -> int:
        is_own = self._owners[lane] == self._ranks.seat.index
        return budget.own_slots if is_own else budget.lane_slots

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


def _touched(lane: int, shape: Lane) -> Slot:
    """A slot whose pages the kernel gives now, not within the time that is measured."""
    slot = Slot(lane, shape)
    slot.payload[::_PAGE] = bytes(-(-len(slot.payload) // _PAGE))
    return slot
