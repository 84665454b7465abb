"""How a workload fares: what its controller makes of its pods' fates, from the first to the last of them."""

from __future__ import annotations

from collections.abc import Mapping

from azcp_kit.rehearse.group_course import GroupCourse, Make, Slot, State
from azcp_kit.rehearse.model import Moment, Need, Wish, Workload
from azcp_kit.rehearse.pod import Pod


class Course:
    """How a workload fares."""

    def __init__(
        self,
        workload: Workload,
        pods: Mapping[tuple[str, str], tuple[Pod, ...]],
        make: Make,
        late: Mapping[str, float],
    ) -> None:
        self.workload = workload
        self.state = State.RUNNING
        self.reason = ""
        self.restarts = 0
        self._pods = pods
        self._make = make
        self._late = late
        self.groups = self._begin()

    @property
    def slots(self) -> list[Slot]:
        """All of its pods."""
        return [slot for group in self.groups for slot in group.slots]

    def step(self, now: float) -> None:
        """Let happen what is due."""
        if self.state is not State.RUNNING:
            return
        for group in self.groups:
            if group.state is not State.WAITING or all(self._is_met(need) for need in group.group.needs):
                group.step(now)
        self._conclude(now)

    def end(self, state: State, reason: str, now: float) -> None:
        """End it, and what of its pods still runs."""
        self.state, self.reason = state, reason
        for group in self.groups:
            group.stop("its work is done" if state is State.DONE else "the workload has failed", now)

    def _begin(self) -> list[GroupCourse]:
        title = self.workload.title
        return [
            GroupCourse(group, self._pods[title, group.name], self._make, self._late)
            for group in self.workload.groups
        ]

    def _is_met(self, need: Need) -> bool:
        needed = [group for group in self.groups if group.group.name == need.group]
        if need.moment is Moment.DONE:
            return all(group.state is State.DONE for group in needed)
        return all(group.state is State.DONE or group.has_come_up for group in needed)

    def _conclude(self, now: float) -> None:
        deciding = [group for group in self.groups if group.group.name in self.workload.deciding]
        failed = [group for group in deciding if group.state is State.FAILED]
        missed = [g for g in self.groups if g.state is State.FAILED and g.group.wish is Wish.SERVES]
        done = [group for group in deciding if group.state is State.DONE]
        if len(done) == len(deciding) or (self.workload.any_decides and done):
            self.end(State.DONE, "", now)
        elif (failed or missed) and self.restarts < self.workload.restarts:
            self._restart(now)
        elif missed:
            self.end(State.FAILED, missed[0].reason, now)
        elif failed and (not self.workload.any_decides or len(failed) == len(deciding)):
            self.end(State.FAILED, failed[0].reason, now)

    def _restart(self, now: float) -> None:
        self.restarts += 1
        for group in self.groups:
            group.stop("all of it is made anew", now)
        before, self.groups = self.slots, self._begin()
        for old, made in zip(before, self.slots, strict=True):
            made.past = [*old.past, *old.fates]
