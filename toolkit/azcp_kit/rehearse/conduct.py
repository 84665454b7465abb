"""Conducts a plan's pods side by side until all that decides is decided, or the time is over."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from azcp_kit.rehearse.course import Course
from azcp_kit.rehearse.fate import Fate, Phase
from azcp_kit.rehearse.group_course import Slot, State
from azcp_kit.rehearse.model import Wish
from azcp_kit.rehearse.names import Names, names_of
from azcp_kit.rehearse.plan import Plan
from azcp_kit.rehearse.pod import Pod
from azcp_kit.rehearse.request import Kill, RehearseRequest, Until
from azcp_kit.rehearse.runtime import Runtime
from azcp_kit.shown import shown

Report = Callable[[float, str, str], None]
"""Told of each step: the seconds since the first pod was begun, the pod, and what has happened to it."""

TICK_S: Final = 0.1
_LOOK_S: Final = 1.0
_LOOKED_AT_LINES: Final = 200
_BEGUN: Final = re.compile(r"^\[(?:list|diff)\] ", re.MULTILINE)
_DISTRIBUTED: Final = re.compile(r"^\[total\] T=", re.MULTILINE)


@dataclass(slots=True)
class _Progress:
    """How far phase 1 of a workload is."""

    looked_s: float = float("-inf")
    began_s: float | None = None


class Conductor:
    """Runs the workloads of a plan."""

    def __init__(
        self,
        plan: Plan,
        request: RehearseRequest,
        runtime: Runtime,
        report: Report,
        prepare: Callable[[Fate], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan = plan
        self._request = request
        self._runtime = runtime
        self._report = report
        self._prepare = prepare
        self._clock = clock
        self._began_s = clock()
        self._names = _all_names(plan)
        self._resolved: dict[str, tuple[str, ...]] = {}
        self._kills = list(request.kills)
        self._made: list[Fate] = []
        self.courses = [Course(load, plan.pods, self._make, request.late) for load in plan.workloads]
        self._progress = {id(course): _Progress() for course in self.courses}

    def run(self) -> float:
        """Conduct all of it; how long it took."""
        self._began_s = self._clock()
        while any(course.state is State.RUNNING for course in self.courses):
            if self._now > self._request.timeout_s:
                self._give_up()
                break
            self.tick()
            time.sleep(TICK_S)
        return self._now

    @property
    def _now(self) -> float:
        """Seconds since it began: making a pod takes its time, and the next one's begins after that."""
        return self._clock() - self._began_s

    def _tell(self, pod: str, what: str) -> None:
        self._report(self._now, pod, what)

    def tick(self) -> None:
        """One step of everything."""
        for course in self.courses:
            course.step(self._now)
            if course.state is State.RUNNING:
                self._look(course)
        self._publish()
        self._kill()

    def _make(self, pod: Pod) -> Fate:
        init = {container.name for container in pod.init}
        fetches = any(task.pod is pod and task.container.name in init for task in self._plan.tasks)
        holds_main = fetches and self._request.until is Until.DISTRIBUTED
        fate = Fate(pod, self._runtime, self._tell, holds_main=holds_main)
        fate.open(self._names[id(pod)].at_once, self._resolved, self._now)
        self._made.append(fate)
        self._prepare(fate)
        return fate

    def _publish(self) -> None:
        """Let names be found that appear with a pod's readiness, and no longer those that go with it."""
        resolved = {
            fate.sandbox.place.address: self._names[id(fate.pod)].when_ready
            for fate in self._made
            if fate.sandbox is not None and fate.is_ready and self._names[id(fate.pod)].when_ready
        }
        if resolved == self._resolved:
            return
        self._resolved = resolved
        for fate in self._made:
            if fate.sandbox is not None and not fate.phase.is_over:
                self._runtime.resolve(fate.sandbox, resolved)

    def _look(self, course: Course) -> None:
        """See how far phase 1 is, where somebody wants to know."""
        wants_end = self._request.until is Until.DISTRIBUTED
        if not wants_end and not any(kill.since == "phase1" for kill in self._kills):
            return
        progress = self._progress[id(course)]
        period_s = _LOOK_S if progress.began_s is not None or wants_end else TICK_S
        if self._now - progress.looked_s < period_s:
            return
        progress.looked_s = self._now
        said = {id(slot): self._said(slot) for slot in course.slots}
        if progress.began_s is None and any(_BEGUN.search(text) for text in said.values()):
            progress.began_s = self._now
        if wants_end and self._is_distributed(course, said):
            course.end(State.DONE, "", self._now)

    def _said(self, slot: Slot) -> str:
        if slot.fate is None:
            return ""
        names = [trial.last.name for trial in slot.fate.trials if trial.last and trial.last.name]
        return "\n".join(self._runtime.tail(name, _LOOKED_AT_LINES) for name in names)

    def _is_distributed(self, course: Course, said: dict[int, str]) -> bool:
        """Whether the data is where it should be, so that what follows need not be waited for."""
        tasks = {(id(task.pod), task.container.name): task.distribution for task in self._plan.tasks}
        leaders: list[Slot] = []
        every: list[Slot] = []
        for slot in course.slots:
            in_main = [tasks.get((id(slot.pod), c.name)) for c in slot.pod.main]
            found = [distribution for distribution in in_main if distribution]
            if found:
                (leaders if found[0].is_every_node else every).append(slot)
            elif slot.pod.init and slot.phase not in (Phase.RUNNING, Phase.SUCCEEDED):
                return False
        ended = [bool(_DISTRIBUTED.search(said[id(slot)])) for slot in leaders]
        has_begun = all(slot.fate is not None for slot in course.slots)
        return has_begun and any(ended or [True]) and all(_DISTRIBUTED.search(said[id(s)]) for s in every)

    def _kill(self) -> None:
        for kill in list(self._kills):
            for course in self.courses:
                for slot in course.slots:
                    if slot.pod.identity.title == kill.pod and self._is_time(kill, course, slot):
                        self._kills.remove(kill)
                        self._tell(kill.pod, "killed, as asked")
                        if slot.fate is not None:
                            slot.fate.signal("SIGKILL")

    def _is_time(self, kill: Kill, course: Course, slot: Slot) -> bool:
        if kill not in self._kills or slot.fate is None or not any(t.is_running for t in slot.fate.trials):
            return False
        began = slot.fate.opened_s if kill.since == "start" else self._progress[id(course)].began_s
        return began is not None and self._now >= began + kill.after_s

    def _give_up(self) -> None:
        for course in self.courses:
            if course.state is State.RUNNING:
                waiting = [slot.pod.identity.title for slot in course.slots if not _is_content(course, slot)]
                what = f"not done after {self._request.timeout_s:.0f} s: {', '.join(waiting)}"
                course.end(State.FAILED, shown(what), self._now)


def _is_content(course: Course, slot: Slot) -> bool:
    """Whether a pod is not what is waited for."""
    wish = next(group.group.wish for group in course.groups if any(slot is own for own in group.slots))
    return slot.phase is Phase.SUCCEEDED or (wish is not Wish.ENDS and slot.has_come_up)


def _all_names(plan: Plan) -> dict[int, Names]:
    searches = tuple(dict.fromkeys(search for pod in plan.all_pods for search in pod.searches))
    return {id(pod): names_of(pod, plan.store.services, searches) for pod in plan.all_pods}
