"""The loop of the main thread, the only one that calls MPI.

A slot of this rank's own lane goes round: fetched, then broadcast and written at once, then free.
A slot of another lane: received, written, posted again. Slots belong to one lane for good, so that
no lane ever waits for another's, and no cycle of waits can form.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from azcp_runtime.contract import BroadcastError
from azcp_runtime.engine.fetch import Fetchers
from azcp_runtime.engine.slots import RUN_BYTES, Slot
from azcp_runtime.engine.write import Writers
from azcp_runtime.mpi.backoff import Backoff
from azcp_runtime.mpi.ranks import OTHERS_PATIENCE, Fabric, Seat
from azcp_runtime.plan.chunks import Lane, Plan

_NAMED: Final = 4
_PAUSE_S: Final = 1.0
_HELD_UP_AFTER_S: Final = 1.0


class Trouble:
    """The first failure of any thread of this rank; the main thread raises it."""

    def __init__(self) -> None:
        self._first: Exception | None = None
        self._lock = threading.Lock()

    def report(self, error: Exception) -> None:
        """Called by a thread that cannot go on."""
        with self._lock:
            self._first = self._first or error

    def check(self) -> None:
        """Raise what was reported, if anything was."""
        if self._first:
            raise self._first


@dataclass(slots=True)
class LaneState:
    """How far one lane is on this rank.

    Attributes:
        shape: the plan's side of it.
        slots: its buffers.
        posted: broadcasts posted so far.
        missing: chunks of it that have not arrived.
    """

    shape: Lane
    slots: list[Slot]
    posted: int = 0
    missing: set[int] = field(default_factory=set)


@dataclass(slots=True)
class BcastTotals:
    """What the fabric did for this rank; times are of a monotonic clock, 0 where it did nothing."""

    received: int = 0
    began: float = 0.0
    ended: float = 0.0
    cpu_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Parts:
    """What one rank's pass is made of.

    Attributes:
        seat: this rank.
        plan: the plan.
        lanes: the lanes of this rail, as the fabric counts them.
        own: index of this rank's own lane among them, or None.
        fabric: the lanes' communicators.
        fetchers: of the own lane; None where there is none.
        writers: the writer threads.
        trouble: failures of the threads.
        name_of: a file's name for messages.
        waits: grows as long as reads wait because the account or a rate told them to.
    """

    seat: Seat
    plan: Plan
    lanes: Sequence[LaneState]
    own: int | None
    fabric: Fabric
    fetchers: Fetchers | None
    writers: Writers
    trouble: Trouble
    name_of: Callable[[int], str]
    waits: Callable[[], int]


class OnePass:
    """One rank's part in the pass.

    Args:
        parts: what it is made of.
        tick: called in every turn with the time, for progress.
        stall_timeout_s: after so many seconds without a byte the pass fails.
    """

    def __init__(self, parts: Parts, tick: Callable[[float], None], stall_timeout_s: float) -> None:
        self._seat = parts.seat
        self._plan = parts.plan
        self._lanes = parts.lanes
        self._own = parts.own
        self._fabric = parts.fabric
        self._fetchers = parts.fetchers
        self._writers = parts.writers
        self._trouble = parts.trouble
        self._name_of = parts.name_of
        self._waits = parts.waits
        self._tick = tick
        self._stall_timeout_s = stall_timeout_s
        self._run = parts.plan.digest()[:RUN_BYTES]
        self._alone = parts.seat.nodes == 1
        self._left = sum(lane.shape.chunks for lane in parts.lanes)
        self._moved_at = time.monotonic()
        self._moved_bytes = 0
        self.totals = BcastTotals()

    def run(self) -> None:
        """Move every chunk; returns when this rank has all of them on its disk as partials.

        Raises:
            AzcpError: a thread failed, a message was wrong, or nothing moved for too long.
        """
        began_cpu = time.thread_time()
        self._fabric.explain(self._held_up_by)
        if self._fetchers:
            self._fetchers.start()
        for index, lane in enumerate(self._lanes):
            lane.missing = set(range(lane.shape.first_chunk, lane.shape.first_chunk + lane.shape.chunks))
            if index != self._own:
                for slot in lane.slots:
                    self._post(slot)
        self._turn()
        self.totals.cpu_s = time.thread_time() - began_cpu

    def _turn(self) -> None:
        backoff, turned_at = Backoff(), time.monotonic()
        while self._left:
            moved = self._send_whole() + self._take_arrived() + self._free_written()
            self._trouble.check()
            now = time.monotonic()
            if now - turned_at > _PAUSE_S:  # this process itself was stopped, or its machine
                self._moved_at += now - turned_at
            turned_at = now
            self._tick(now)
            if moved:
                self._moved_at = now
                backoff.moved()
            else:
                self._watch(now)
                backoff.nap()

    def _send_whole(self) -> int:
        """Broadcast and write what the fetchers have finished."""
        count = 0
        while self._fetchers and self._fetchers.whole:
            slot = self._fetchers.whole.popleft()
            slot.sent = self._alone
            if not self._alone:
                slot.label(slot.chunk, self._run)
                self._post(slot)
            self._writers.submit(slot)
            count += 1
        return count

    def _take_arrived(self) -> int:
        """Write what has been received; note what has been sent."""
        arrived = self._fabric.completed()
        for slot in arrived:
            self.totals.ended = time.monotonic()
            if slot.lane == self._own:
                slot.sent = True
                self._release(slot)
            else:
                lane = self._lanes[slot.lane]
                lane.missing.discard(slot.read_label(lane.shape, self._run))
                self.totals.received += sum(self._plan.length[e] for e in self._plan.extents(slot.chunk))
                self._writers.submit(slot)
        return len(arrived)

    def _free_written(self) -> int:
        count = 0
        while self._writers.written:
            slot = self._writers.written.popleft()
            slot.chunk = -1
            self._release(slot)
            count += 1
        return count

    def _release(self, slot: Slot) -> None:
        """Reuse a slot that is both sent (or received) and written."""
        if not slot.sent or slot.chunk >= 0:
            return
        self._left -= 1
        if slot.lane == self._own and self._fetchers:
            self._fetchers.give_back(slot)
        else:
            self._post(slot)

    def _post(self, slot: Slot) -> None:
        lane = self._lanes[slot.lane]
        if lane.posted == lane.shape.chunks:
            return
        lane.posted += 1
        self.totals.began = self.totals.began or time.monotonic()
        self._fabric.post(slot.lane, slot)

    def _watch(self, now: float) -> None:
        """Name who is waited for when nothing has moved for too long."""
        arrived = self._fetchers.arrived_bytes if self._fetchers else 0
        moved = arrived + self._writers.totals.bytes + self._waits()
        everywhere = moved + self._fabric.moved_elsewhere(moved)
        if everywhere != self._moved_bytes:
            self._moved_bytes, self._moved_at = everywhere, now
        # Rank 0 hears of everybody, so it speaks first; the others only if it is rank 0 that is stopped.
        patience = self._stall_timeout_s * (1 if self._seat.rank == 0 else OTHERS_PATIENCE)
        if now - self._moved_at < patience:
            return
        waits_for, cause = self._waited_for()
        raise BroadcastError(
            f"nothing moved for {patience:.0f} s: {waits_for}",
            cause=cause,
            remedy="look at that node; --stall-timeout sets the limit",
        )

    def _waited_for(self) -> tuple[str, str]:
        """Who holds up the pass, and what may be the matter.

        A rank that is silent holds up all, one that reads or writes the others that do neither.
        """
        seat = self._seat
        if silent := self._fabric.silent():
            names = ", ".join(seat.named(rank) for rank in silent[:_NAMED])
            return f"no sign of life from {names}", "a stopped process or a cut link"
        held_up = {**self._fabric.held_up()}
        if here := self._doing():
            held_up[seat.rank] = here
        if held_up:
            told = [f"{seat.named(rank)} {doing}" for rank, doing in sorted(held_up.items())[:_NAMED]]
            return "; ".join(told), "an account or a disk that does not answer"
        cause = "a cut link, or a process that does not receive"
        waiting = [lane for at, lane in enumerate(self._lanes) if at != self._own and lane.missing]
        if not waiting:
            return f"{seat.named(seat.rank)} waits for a rank that does not receive", cause
        lanes = ", ".join(self._missing_of(lane) for lane in waiting[:_NAMED])
        return f"{seat.named(seat.rank)} waits for {lanes}", cause

    def _held_up_by(self) -> str:
        """For rank 0: what this rank does itself, once that moves nothing any more."""
        return self._doing() if time.monotonic() - self._moved_at > _HELD_UP_AFTER_S else ""

    def _doing(self) -> str:
        """The reads and writes that are under way here, with their lanes; empty where others are to move."""
        doing = []
        if self._fetchers and (reading := self._fetchers.reading()):
            doing.append(f"reads {', '.join(reading[:_NAMED])} (its own lane)")
        doing += [
            f"writes {self._name_of(file)} (lane of rank {self._seat.at(self._lanes[lane].shape.owner)})"
            for lane, file in self._writers.writing()[:_NAMED]
        ]
        return " and ".join(doing)

    def _missing_of(self, lane: LaneState) -> str:
        owner, plan = lane.shape.owner, self._plan
        first = self._name_of(plan.file[plan.chunk_start[min(lane.missing)]])
        return (
            f"the lane of {self._seat.named(self._seat.at(owner))} "
            f"({len(lane.missing)} of {lane.shape.chunks} chunks missing, the first of {first})"
        )
