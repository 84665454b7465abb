"""Looks at a rehearsal that is over: how every container ended, what it said, and what the nodes have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from azcp_runtime.contract import PreflightError

from azcp_kit.rehearse.cargo import Cargo, differences
from azcp_kit.rehearse.course import Course
from azcp_kit.rehearse.fate import Fate, Phase
from azcp_kit.rehearse.group_course import GroupCourse, Slot, State
from azcp_kit.rehearse.kubelet import Kubelet
from azcp_kit.rehearse.marks import CHATTER, FINISHED, SUMMARY
from azcp_kit.rehearse.model import Wish
from azcp_kit.rehearse.outcome import ContainerEnd, Line, NodeData, Outcome, PodEnd, Verdict, WorkloadEnd
from azcp_kit.rehearse.plan import Plan
from azcp_kit.rehearse.pod import Container, Pod
from azcp_kit.rehearse.request import Until
from azcp_kit.rehearse.secrecy import Censor
from azcp_kit.rehearse.trial import Start
from azcp_kit.shown import shown

_TAIL_LINES: Final = 12
_WELL_LINES: Final = 20
_READ_LINES: Final = 400


class Witness:
    """Tells what a rehearsal has shown, without a word of any secret."""

    def __init__(self, plan: Plan, kubelet: Kubelet, cargo: Cargo, censor: Censor, began_at: float) -> None:
        self._began_at = began_at
        self._plan = plan
        self._kubelet = kubelet
        self._cargo = cargo
        self._clean = censor

    def outcome(self, courses: Sequence[Course], until: Until, took_s: float) -> Outcome:
        """All of it."""
        pods = {
            id(course): tuple(
                self._pod_end(course, group, slot, until) for group in course.groups for slot in group.slots
            )
            for course in courses
        }
        data = {id(course): tuple(self._data(course)) for course in courses}
        cut = [c for c in courses if _is_cut_short(c, pods[id(c)], data[id(c)]) and self._paths(c)]
        return Outcome(
            nodes=self._plan.nodes,
            manifest_nodes=self._plan.manifest_nodes,
            took_s=took_s,
            files=len(self._cargo.digests),
            size_bytes=self._cargo.size_bytes,
            workloads=tuple(self._workload_end(course) for course in courses),
            pods=tuple(end for course in courses for end in pods[id(course)]),
            data=tuple(entry for c in courses if c not in cut for entry in data[id(c)]),
            destinations=tuple(dict.fromkeys(shown(path) for c in courses for path in self._paths(c))),
            cut_short=tuple(course.workload.title for course in cut),
            made_up=tuple(
                shown(f"Secret {made.name}: {', '.join(made.content) or 'empty'}")
                for made in self._plan.made_up
            ),
            unshown=self._plan.unshown,
            skipped=self._plan.skipped,
        )

    def _pod_end(self, course: Course, group: GroupCourse, slot: Slot, until: Until) -> PodEnd:
        fate, identity, made = slot.fate, slot.pod.identity, [*slot.past, *slot.fates]
        is_done = course.state is State.DONE
        good = _is_good(group.group.wish, slot, is_over_early=is_done and until is Until.DISTRIBUTED)
        good = good or (is_done and course.workload.any_decides and slot.phase is Phase.STOPPED)
        return PodEnd(
            workload=course.workload.title,
            name=identity.title,
            node=shown(identity.node),
            wish=group.group.wish.value,
            verdict=Verdict.OK if good else Verdict.FAILED if made else Verdict.NOT_STARTED,
            phase=slot.phase.value if made else Verdict.NOT_STARTED.value,
            reason="" if fate is None else self._clean(fate.reason),
            pods=len(made),
            made_s=made[0].opened_s if made else None,
            ready_s=fate.ready_s if fate else None,
            ended_s=fate.ended_s if fate else None,
            containers=tuple(
                end for number, one in enumerate(made, start=1) for end in self._container_ends(number, one)
            ),
        )

    def _container_ends(self, number: int, fate: Fate) -> Iterator[ContainerEnd]:
        for trial in fate.trials:
            is_main = any(trial is own for own in fate.main)
            kind = "main" if is_main else "sidecar" if trial.container.is_sidecar else "init"
            for index, start in enumerate(trial.starts, start=1):
                is_last = start is trial.last
                yield self._container_end((number, index), trial.container.name, kind, start, fate, is_last)

    def _container_end(
        self, numbers: tuple[int, int], name: str, kind: str, start: Start, fate: Fate, is_last: bool
    ) -> ContainerEnd:
        said = self._kubelet.said(start.name, _READ_LINES) if start.name else ()
        lines = [Line(max(0.0, at - self._began_at), self._clean(text)) for at, text in said if text.strip()]
        was_stopped = is_last and fate.phase is Phase.STOPPED
        has_failed = start.ended is not None and start.ended.code != 0 and not was_stopped
        return ContainerEnd(
            pod=numbers[0],
            name=shown(name),
            kind=kind,
            start=numbers[1],
            code=start.ended.code if start.ended else None,
            took_s=(start.ended_s or start.started_s) - start.started_s,
            summary=tuple(line for line in lines if SUMMARY.match(line.text)),
            has_failed=has_failed,
            tail=_tail(lines, has_failed=has_failed) if has_failed or kind == "main" else (),
        )

    def _workload_end(self, course: Course) -> WorkloadEnd:
        return WorkloadEnd(
            title=course.workload.title,
            verdict=Verdict.OK if course.state is State.DONE else Verdict.FAILED,
            reason=self._clean(course.reason),
            restarts=course.restarts,
            notices=tuple(shown(notice) for notice in course.workload.notices),
        )

    def _data(self, course: Course) -> Iterator[NodeData]:
        """What lies where the workload's commands put the data, in every pod that has a disk there."""
        for path in self._paths(course):
            for slot in course.slots:
                container = _holder_of(path, slot.pod)
                name = _last_name(slot.fate, container) if slot.fate and container else ""
                if container is not None and name:
                    yield self._node_data(slot.pod, name, path)

    def _paths(self, course: Course) -> tuple[str, ...]:
        """Where the workload's commands put the data."""
        pods = {id(slot.pod) for slot in course.slots}
        tasks = (task for task in self._plan.tasks if id(task.pod) in pods)
        return tuple(dict.fromkeys(task.distribution.destination for task in tasks))

    def _node_data(self, pod: Pod, name: str, path: str) -> NodeData:
        try:
            with self._kubelet.archive(name, path) as chunks:
                found = differences(self._cargo, chunks)
        except PreflightError as error:
            found = (self._clean(str(error)),)
        return NodeData(pod.identity.title, shown(pod.identity.node), shown(path), found)


def _tail(lines: list[Line], *, has_failed: bool) -> tuple[Line, ...]:
    """The last that was said; what is no failure is told without what the summary has already."""
    if has_failed:
        return tuple(lines[-_TAIL_LINES:])
    told = (line for line in lines if not SUMMARY.match(line.text) and not CHATTER.match(line.text))
    return tuple(told)[-_WELL_LINES:]


def _is_cut_short(course: Course, pods: Sequence[PodEnd], data: Sequence[NodeData]) -> bool:
    """Whether the workload failed before phase 1 was done: nobody says so, and no node has the data."""
    ends = (end for pod in pods for end in pod.containers)
    is_told = any(FINISHED.match(line.text) for end in ends for line in end.summary)
    return course.state is not State.DONE and not is_told and all(entry.differences for entry in data)


def _is_good(wish: Wish, slot: Slot, *, is_over_early: bool) -> bool:
    if slot.fate is None:
        return False
    if wish is Wish.ENDS and not is_over_early:
        return slot.phase is Phase.SUCCEEDED
    if wish is Wish.STAYS and not is_over_early:
        return slot.phase is not Phase.FAILED and slot.fate.ready_s is not None
    return slot.phase is not Phase.FAILED


def _holder_of(path: str, pod: Pod) -> Container | None:
    """The container of a pod that has a volume at the path or above it; the last one started."""
    for container in reversed(pod.containers):
        for mount in container.mounts:
            if path == mount.path or path.startswith(f"{mount.path}/"):
                return container
    return None


def _last_name(fate: Fate, container: Container) -> str:
    """The engine's name of a container that was started, or of another of the pod that sees the same."""
    for trial in fate.trials:
        if trial.container is container and trial.last and trial.last.name:
            return trial.last.name
    mounts = {mount.path: mount.volume for mount in container.mounts}
    for trial in reversed(fate.trials):
        same = any(mounts.get(mount.path) == mount.volume for mount in trial.container.mounts)
        if trial.last and trial.last.name and same:
            return trial.last.name
    return ""
