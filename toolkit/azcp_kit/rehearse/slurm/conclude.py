"""The outcome of a batch script's rehearsal, in the words that a manifest's has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from azcp_kit.rehearse.cargo import Cargo
from azcp_kit.rehearse.outcome import ContainerEnd, NodeData, Outcome, PodEnd, Verdict, WorkloadEnd
from azcp_kit.rehearse.slurm.said import Said
from azcp_kit.rehearse.slurm.script import BatchScript
from azcp_kit.shown import shown

_SCRIPT = "script"


@dataclass(frozen=True, slots=True)
class StepEnd:
    """A step that srun's stand-in has run.

    Args:
        number: of it.
        words: what its tasks were.
        tasks: how many.
        code: the highest of theirs.
        took_s: all of them.
    """

    number: int
    words: tuple[str, ...]
    tasks: int
    code: int
    took_s: float


@dataclass(frozen=True, slots=True)
class End:
    """How a job has ended.

    Args:
        title: of the job, where it ran.
        nodes: their names.
        phase: the last state.
        code: of the script; None where it was ended.
        is_good: whether it did all that was asked for.
        reason: why not.
        notices: what the operator should know.
        started_s, ended_s, took_s: since the start of the rehearsal.
        steps: where they are known.
    """

    title: str
    nodes: str
    phase: str
    code: int | None
    is_good: bool
    reason: str
    notices: tuple[str, ...]
    started_s: float | None
    ended_s: float | None
    took_s: float
    restarts: int = 0
    steps: tuple[StepEnd, ...] = ()


def conclude(
    script: BatchScript,
    nodes: int,
    cargo: Cargo,
    said: Said,
    end: End,
    data: Sequence[NodeData],
    unshown: Sequence[str],
) -> Outcome:
    """All of it, as values."""
    verdict = Verdict.OK if end.is_good else Verdict.FAILED
    is_cut = not end.is_good and not said.is_distributed and all(entry.differences for entry in data)
    return Outcome(
        nodes=nodes,
        manifest_nodes=script.nodes,
        took_s=end.took_s,
        files=len(cargo.digests),
        size_bytes=cargo.size_bytes,
        workloads=(WorkloadEnd(script.title, verdict, said.clean(end.reason), end.restarts, end.notices),),
        pods=(_job(script, said, end, verdict),),
        data=() if is_cut else tuple(data),
        destinations=(shown(script.destination),) if script.destination else (),
        cut_short=(script.title,) if is_cut and script.destination else (),
        made_up=(),
        unshown=tuple(unshown),
        skipped=(),
    )


def _job(script: BatchScript, said: Said, end: End, verdict: Verdict) -> PodEnd:
    return PodEnd(
        workload=script.title,
        name=shown(end.title),
        node=shown(end.nodes),
        wish="ends",
        verdict=verdict if end.started_s is not None else Verdict.NOT_STARTED,
        phase=shown(end.phase),
        reason="",
        pods=1 if end.started_s is not None else 0,
        made_s=end.started_s,
        ready_s=said.distributed_s,
        ended_s=end.ended_s,
        containers=(*(_step(step) for step in end.steps), _script_end(said, end)),
    )


def _step(step: StepEnd) -> ContainerEnd:
    program = step.words[0].rpartition("/")[2] if step.words else ""
    return ContainerEnd(
        pod=1,
        name=shown(f"step {step.number} ({program})"),
        kind="init",
        start=1,
        code=step.code,
        took_s=step.took_s,
        summary=(),
        has_failed=False,
        tail=(),
    )


def _script_end(said: Said, end: End) -> ContainerEnd:
    has_failed = not end.is_good
    return ContainerEnd(
        pod=1,
        name=_SCRIPT,
        kind="main",
        start=1,
        code=end.code,
        took_s=(end.ended_s or 0.0) - (end.started_s or 0.0),
        summary=said.summary(),
        has_failed=has_failed,
        tail=said.tail(has_failed=has_failed),
    )


def read_steps(records: Mapping[int, Mapping[str, object]]) -> tuple[StepEnd, ...]:
    """What srun's stand-in has written of each step."""
    found = []
    for number, record in sorted(records.items()):
        words = record.get("words")
        found.append(
            StepEnd(
                number=number,
                words=tuple(map(str, words)) if isinstance(words, list) else (),
                tasks=int(str(record.get("tasks", 0))),
                code=int(str(record.get("code", 0))),
                took_s=float(str(record.get("took_s", 0.0))),
            )
        )
    return tuple(found)
