"""How a group of pods fares: made in their turn, made anew after failures, and counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from azcp_kit.rehearse.fate import Fate, Phase
from azcp_kit.rehearse.model import Group, Wish
from azcp_kit.rehearse.pod import Pod
from azcp_kit.rehearse.trial import FIRST_PAUSE_S, LONGEST_PAUSE_S

_SETTLED_S: Final = 2.0
"""A pod that is to stay must have been ready for so long."""
_MOST_RESTARTS: Final = 3
"""Of a pod whose controller would have it restarted for ever."""

Make = Callable[[Pod], Fate]
"""Makes a pod and puts it on its node; it may take until its turn comes."""


class State(Enum):
    """Where a group or a workload is."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(slots=True)
class Slot:
    """A pod of a group over all that were made in its place.

    Args:
        pod: which one.
        fates: the pods made, the last of them the present one.
        past: those of before the whole workload was made anew.
        next_s: when another one is made; None where none is due.
    """

    pod: Pod
    fates: list[Fate] = field(default_factory=list)
    past: list[Fate] = field(default_factory=list)
    next_s: float | None = 0.0

    @property
    def fate(self) -> Fate | None:
        """The present one."""
        return self.fates[-1] if self.fates else None

    @property
    def phase(self) -> Phase:
        """Of the present one."""
        return self.fate.phase if self.fate else Phase.WAITING

    @property
    def is_active(self) -> bool:
        """Whether it runs."""
        return self.fate is not None and not self.phase.is_over

    @property
    def failures(self) -> int:
        """As a Job counts them: pods that failed, and restarts within the present one."""
        failed = sum(fate.phase is Phase.FAILED for fate in self.fates)
        return failed + (self.fate.restarts if self.fate else 0)

    @property
    def has_come_up(self) -> bool:
        """Whether it is ready, or has ended well already."""
        return self.fate is not None and (self.fate.is_ready or self.phase is Phase.SUCCEEDED)


class GroupCourse:
    """How a group fares."""

    def __init__(self, group: Group, pods: tuple[Pod, ...], make: Make, late: Mapping[str, float]) -> None:
        self.group = group
        self.slots = [Slot(pod) for pod in pods]
        self.state = State.WAITING
        self.reason = ""
        self._make = make
        self._late = late
        self._started_s = 0.0
        self._ready_since: float | None = None

    @property
    def has_come_up(self) -> bool:
        """Whether all of its pods have."""
        return all(slot.has_come_up for slot in self.slots)

    @property
    def has_failed(self) -> bool:
        """Whether it is over, and not well."""
        return self.state is State.FAILED

    def step(self, now: float) -> None:
        """Let happen what is due."""
        if self.state is State.WAITING:
            self.state, self._started_s = State.RUNNING, now
        if self.state is not State.RUNNING:
            return
        for index, slot in enumerate(self.slots):
            if slot.next_s is not None and self._is_due(index, slot, now):
                slot.next_s = None
                slot.fates.append(self._make(slot.pod))
            if slot.fate is not None:
                # Making the pods before it has taken its time.
                now = max(now, slot.fate.opened_s)
                slot.fate.step(now)
                self._judge(slot, now)
            if self.has_failed:
                return
        self._conclude(now)

    def stop(self, reason: str, now: float) -> None:
        """End what still runs."""
        for slot in self.slots:
            slot.next_s = None
            if slot.fate is not None and not slot.phase.is_over:
                slot.fate.stop(Phase.STOPPED, reason, now)

    def _is_due(self, index: int, slot: Slot, now: float) -> bool:
        late_s = self._late.get(slot.pod.identity.title, 0.0) if not slot.fates else 0.0
        if now < max(slot.next_s or 0.0, self._started_s + late_s):
            return False
        if self.group.is_ordered and index and not self.slots[index - 1].has_come_up:
            return False
        limit = self.group.at_a_time
        return limit is None or sum(other.is_active for other in self.slots) < limit

    def _judge(self, slot: Slot, now: float) -> None:
        """Decide about a pod that has failed, or that is restarted again and again."""
        fate, limit = slot.fate, self.group.backoff_limit
        if fate is None or slot.next_s is not None:
            return
        if limit is None:
            self._judge_unlimited(slot, fate, now)
            return
        if fate.looping is not None and fate.looping.container.is_sidecar and fate.phase is Phase.STARTING:
            # The Job does not count it, and what follows it is never started.
            fate.stop(Phase.FAILED, _loop(fate), now)
            self._fail(_of(slot, fate.reason), now)
            return
        counted = slot.failures if self.group.is_per_index else sum(other.failures for other in self.slots)
        if counted > limit:
            reason = f"BackoffLimitExceeded: {counted} failed, {limit} may; {_of(slot, fate.trouble)}"
            if not fate.phase.is_over:
                fate.stop(Phase.FAILED, reason, now)
            self._fail(reason, now)
        elif fate.phase is Phase.FAILED:
            slot.next_s = now + min(FIRST_PAUSE_S * 2.0 ** (counted - 1), LONGEST_PAUSE_S)

    def _judge_unlimited(self, slot: Slot, fate: Fate, now: float) -> None:
        """Decide about a pod whose failures nobody counts: only restarts in place help it."""
        is_stuck = fate.looping is not None or fate.restarts > _MOST_RESTARTS
        if is_stuck and not fate.phase.is_over and not self._awaits_late:
            fate.stop(Phase.FAILED, _loop(fate), now)
        if fate.phase is not Phase.FAILED:
            return
        wish = self.group.wish
        is_missed = wish is Wish.SERVES and (is_stuck or not fate.was_ready)
        if is_missed or (wish is Wish.ENDS and not self.group.is_patient):
            self._fail(_of(slot, fate.reason), now)

    @property
    def _awaits_late(self) -> bool:
        """Whether a pod is still held back, whose absence may be what the others fail for."""
        late = (slot for slot in self.slots if slot.pod.identity.title in self._late)
        return not self.group.is_ordered and any(not slot.fates for slot in late)

    def _conclude(self, now: float) -> None:
        if self.state is not State.RUNNING:
            return
        deadline_s = self.group.deadline_s
        if deadline_s is not None and now - self._started_s > deadline_s:
            self._fail(f"DeadlineExceeded: activeDeadlineSeconds {deadline_s}", now)
        elif self.group.wish is Wish.ENDS:
            self._conclude_ending(now)
        elif self.group.wish is Wish.STAYS:
            self._conclude_staying(now)

    def _conclude_ending(self, now: float) -> None:
        phases = [slot.phase for slot in self.slots]
        if all(phase is Phase.SUCCEEDED for phase in phases):
            self.state = State.DONE
        elif all(slot.phase.is_over and slot.next_s is None for slot in self.slots):
            failed = [slot.pod.identity.title for slot in self.slots if slot.phase is Phase.FAILED]
            self._fail(f"failed: {', '.join(failed)}", now)

    def _conclude_staying(self, now: float) -> None:
        failed = [slot for slot in self.slots if slot.phase is Phase.FAILED]
        if failed:
            self._fail(_of(failed[0], failed[0].fate.reason if failed[0].fate else ""), now)
        if not self.has_come_up:
            self._ready_since = None
        elif self._ready_since is None:
            self._ready_since = now
        elif now - self._ready_since >= _SETTLED_S:
            self.state = State.DONE

    def _fail(self, reason: str, now: float) -> None:
        self.state, self.reason = State.FAILED, reason
        self.stop("its group has failed", now)


def _loop(fate: Fate) -> str:
    starts = f"CrashLoopBackOff: restarted {fate.restarts} times"
    return f"{starts}, {fate.looping.told() if fate.looping else fate.trouble}"


def _of(slot: Slot, reason: str) -> str:
    return f"{slot.pod.identity.title}: {reason}"
