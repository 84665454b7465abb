"""The variables that Slurm sets: for the batch script, and for each task of a step."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Final

from azcp_kit.rehearse.slurm.stand_ins.request import Step
from azcp_kit.rehearse.slurm.stand_ins.wire import Job

_NOT_HANDED_ON: Final = "SLURM_STEP"


def script_variables(job: Job, tasks_per_node: int, folder: str) -> dict[str, str]:
    """Of the batch script, on the first node."""
    count = len(job.nodes)
    names = ",".join(job.nodes)
    return {
        "SLURM_CLUSTER_NAME": "rehearsal",
        "SLURM_JOB_ID": str(job.number),
        "SLURM_JOBID": str(job.number),
        "SLURM_JOB_NAME": job.name,
        "SLURM_JOB_NODELIST": names,
        "SLURM_NODELIST": names,
        "SLURM_JOB_NUM_NODES": str(count),
        "SLURM_NNODES": str(count),
        "SLURM_NTASKS": str(count * tasks_per_node),
        "SLURM_NPROCS": str(count * tasks_per_node),
        "SLURM_NTASKS_PER_NODE": str(tasks_per_node),
        "SLURM_TASKS_PER_NODE": _per_node([tasks_per_node] * count),
        "SLURM_SUBMIT_DIR": folder,
        "SLURM_SUBMIT_HOST": job.nodes[0],
        "SLURMD_NODENAME": job.nodes[0],
        "SLURM_NODEID": "0",
        "SLURM_PROCID": "0",
        "SLURM_LOCALID": "0",
    }


def task_variables(job: Job, step: Step, number: int, rank: int, env: Mapping[str, str]) -> dict[str, str]:
    """Of one task of a step: what srun's own environment hands on, and where the task is.

    Args:
        job: whose.
        step: the same.
        number: of the step.
        rank: of the task.
        env: that of srun.
    """
    node = step.tasks[rank]
    names = ",".join(step.nodes)
    counts = [step.tasks.count(index) for index in range(len(step.nodes))]
    return {
        **exported(step.options.get("export", "ALL"), env),
        "SLURM_JOB_ID": str(job.number),
        "SLURM_JOBID": str(job.number),
        "SLURM_JOB_NODELIST": ",".join(job.nodes),
        "SLURM_NODELIST": ",".join(job.nodes),
        "SLURM_JOB_NUM_NODES": str(len(job.nodes)),
        "SLURM_NNODES": str(len(step.nodes)),
        "SLURM_NTASKS": str(len(step.tasks)),
        "SLURM_NPROCS": str(len(step.tasks)),
        "SLURM_TASKS_PER_NODE": _per_node(counts),
        "SLURM_STEP_ID": str(number),
        "SLURM_STEPID": str(number),
        "SLURM_STEP_NODELIST": names,
        "SLURM_STEP_NUM_NODES": str(len(step.nodes)),
        "SLURM_STEP_NUM_TASKS": str(len(step.tasks)),
        "SLURM_STEP_TASKS_PER_NODE": _per_node(counts),
        "SLURMD_NODENAME": step.nodes[node],
        "SLURM_NODEID": str(node),
        "SLURM_PROCID": str(rank),
        "SLURM_LOCALID": str(rank - step.tasks.index(node)),
    }


def exported(wish: str, env: Mapping[str, str]) -> dict[str, str]:
    """What --export lets through."""
    parts = [part for part in wish.split(",") if part]
    is_all = "ALL" in parts
    found = {
        name: value
        for name, value in env.items()
        if (is_all or name.startswith("SLURM_") or name in parts or name == "PATH")
        and not name.startswith(_NOT_HANDED_ON)
    }
    for part in parts:
        name, sign, value = part.partition("=")
        if sign:
            found[name] = value
    return found


def _per_node(counts: list[int]) -> str:
    """Such as 2(x3),1."""
    runs = [(count, len(list(run))) for count, run in groupby(counts)]
    return ",".join(f"{count}(x{length})" if length > 1 else str(count) for count, length in runs)
