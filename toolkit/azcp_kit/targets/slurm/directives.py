"""The #SBATCH lines of a job, together at the head of its script: after the first command none is read."""

from __future__ import annotations

import math

from azcp_kit.quantity import quantity_bytes
from azcp_kit.quoting.directive import sbatch_directive
from azcp_kit.spec.job import JobSpec

_MIB = 1 << 20
_MINUTE_S = 60


def directives(job: JobSpec) -> list[str]:
    """The lines.

    Raises:
        UsageError: a value cannot be said in one.
    """
    slurm = job.slurm
    options = {
        "job-name": job.name,
        "partition": slurm.partition,
        "account": slurm.account,
        "qos": slurm.qos,
        "constraint": slurm.constraint,
        "reservation": slurm.reservation,
        "nodes": str(job.nodes),
        "ntasks-per-node": str(slurm.tasks_per_node),
        **resources(job, slurm.tasks_per_node),
        "time": str(math.ceil(job.limits.deadline_s / _MINUTE_S)) if job.limits.deadline_s else "",
        # To the script alone, which tells its step: what Slurm sends to a step does not name the reason.
        "signal": f"B:USR1@{slurm.grace_s}",
        "output": f"{job.name}-%j.log",
        "open-mode": "append",
    }
    flags = ["exclusive", "requeue" if job.limits.retries else "no-requeue"]
    valued = [sbatch_directive(name, value) for name, value in options.items() if value]
    return [*valued, *(sbatch_directive(flag) for flag in flags)]


def resources(job: JobSpec, tasks_per_node: int) -> dict[str, str]:
    """What a node is asked for, which each srun says again: it does not inherit all of it.

    Args:
        job: whose.
        tasks_per_node: of the step.
    """
    slurm = job.slurm
    cpus = slurm.cpus_per_task * slurm.tasks_per_node // tasks_per_node
    memory = -(-quantity_bytes(job.resources.memory) // _MIB) if job.resources.memory else 0
    return {
        "cpus-per-task": str(cpus) if cpus else "",
        "gpus-per-node": str(slurm.gpus) if slurm.gpus else "",
        # 0 is all that a node has; without it many sites give a task a share for one CPU.
        "mem": f"{memory}M" if memory else "0",
    }
