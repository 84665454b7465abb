"""What a rehearsal has shown, as values: every pod's end, the data on the nodes, and what remains unknown."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from azcp_runtime.contract import ExitCode


class Verdict(Enum):
    """Whether something went as it should."""

    OK = "ok"
    FAILED = "failed"
    NOT_STARTED = "not started"


@dataclass(frozen=True, slots=True)
class Line:
    """What a container said, and when, since the start of the rehearsal."""

    at_s: float
    text: str


@dataclass(frozen=True, slots=True)
class ContainerEnd:
    """One start of a container.

    Args:
        pod: which of the pods made in the same place has it, from 1.
        name: its own.
        kind: init, sidecar or main.
        start: which of its starts it is, from 1.
        code: with which it ended; None where it was still running.
        took_s: how long it ran.
        summary: what azcp-launch and azcp-distribute said of the phases.
        has_failed: whether it ended with another code than 0 of itself.
        tail: the last lines, of a main container or one that failed.
    """

    pod: int
    name: str
    kind: str
    start: int
    code: int | None
    took_s: float
    summary: tuple[Line, ...]
    has_failed: bool
    tail: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class PodEnd:
    """A pod.

    Args:
        workload, name, node: which one, and where it was.
        wish: what it was there for.
        verdict: whether it did that.
        phase: in which it was at the end.
        reason: why, where it failed or was stopped.
        pods: how many were made in its place.
        made_s, ready_s, ended_s: since the start of the rehearsal; None for never.
        containers: every start of each, container by container.
    """

    workload: str
    name: str
    node: str
    wish: str
    verdict: Verdict
    phase: str
    reason: str
    pods: int
    made_s: float | None
    ready_s: float | None
    ended_s: float | None
    containers: tuple[ContainerEnd, ...]


@dataclass(frozen=True, slots=True)
class NodeData:
    """What a node has of the data set: how it differs, or why it could not be read."""

    pod: str
    node: str
    path: str
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WorkloadEnd:
    """A workload.

    Args:
        title: such as `MPIJob llama`.
        verdict: whether it did what it is for.
        reason: why not.
        restarts: how often all of it was made anew.
        notices: what the operator should know.
    """

    title: str
    verdict: Verdict
    reason: str
    restarts: int
    notices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """All of it.

    Args:
        nodes, manifest_nodes: how many were rehearsed, and how many the manifest has.
        took_s: by the pods.
        files, size_bytes: of the data set.
        workloads, pods, data: what became of them.
        destinations: where the commands put the data.
        cut_short: the workloads that failed before phase 1 was done, whose data was not compared.
        made_up: Secrets that the manifest lacks, with their keys.
        unshown: what this machine cannot show.
        skipped: documents that were not rehearsed.
    """

    nodes: int
    manifest_nodes: int
    took_s: float
    files: int
    size_bytes: int
    workloads: tuple[WorkloadEnd, ...]
    pods: tuple[PodEnd, ...]
    data: tuple[NodeData, ...]
    destinations: tuple[str, ...]
    cut_short: tuple[str, ...]
    made_up: tuple[str, ...]
    unshown: tuple[str, ...]
    skipped: tuple[str, ...]

    @property
    def is_compared(self) -> bool:
        """Whether any node's data was looked at."""
        return bool(self.data)

    @property
    def different(self) -> tuple[NodeData, ...]:
        """The nodes whose data is not the data set."""
        return tuple(entry for entry in self.data if entry.differences)

    @property
    def exit_code(self) -> ExitCode:
        """8 where a pod did not do what it is there for, 7 where only the data differs."""
        verdicts = [*(end.verdict for end in self.workloads), *(end.verdict for end in self.pods)]
        if any(verdict is not Verdict.OK for verdict in verdicts):
            return ExitCode.PREFLIGHT
        return ExitCode.VERIFY if self.different else ExitCode.DONE

    def to_json(self) -> str:
        """For programs."""
        values: dict[str, Any] = asdict(self)
        values |= {"exit_code": int(self.exit_code)}
        return json.dumps(values, indent=2, default=_plain) + "\n"


def _plain(value: object) -> object:
    return value.value if isinstance(value, Enum) else str(value)
