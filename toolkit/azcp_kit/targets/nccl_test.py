"""A batch script that tests the fabric: an all-reduce of all GPUs, laid out as the VM size wants it."""

from __future__ import annotations

import math
from typing import Final

from azcp_runtime.contract import UsageError

from azcp_kit.quoting.directive import sbatch_directive
from azcp_kit.render import render
from azcp_kit.spec.job import JobSpec
from azcp_kit.spec.problems import Problem
from azcp_kit.targets.nccl_step import INSIDE, NcclStep, nccl_step
from azcp_kit.targets.slurm.mounts import written
from azcp_kit.targets.slurm.problems import import_problems
from azcp_kit.targets.slurm.wish import Container, Wish

_MINUTE_S: Final = 60
_NO_SKU: Final = Problem("sku", "is missing: the test is laid out by the VM size")


def nccl_test_script(job: JobSpec, wish: Wish) -> str:
    """The script.

    Raises:
        UsageError: the job has problems that nccl_test_problems tells.
    """
    if job.sku is None:
        raise UsageError(f"{_NO_SKU}")
    step = nccl_step(job, wish, job.sku)
    return render(
        "slurm/nccl-test.sbatch.j2",
        directives=_directives(step),
        name=_name(step),
        nodes=job.nodes,
        ranks=job.nodes * step.sku.gpus,
        said=_said(step),
        probe=step.resources(tasks=1, cpus=1),
        step=step,
        env=[f"{name}={value}" for name, value in step.env.items()],
    )


def nccl_test_problems(job: JobSpec, wish: Wish) -> list[Problem]:
    """What the script must know, and what a container cannot be given.

    Raises:
        UsageError: the test does not run in this kind of container.
    """
    if wish.container not in INSIDE:
        known = ", ".join(INSIDE)
        raise UsageError(f"the test does not run in {wish.container.value}", remedy=f"--container {known}")
    if job.sku is None:
        return [_NO_SKU]
    step = nccl_step(job, wish, job.sku)
    found = []
    if not step.fits(2):
        what = f"two buffers of it do not fit the {step.size.gpu_memory_gib} GB of a GPU"
        found.append(Problem("nccl-test.max-bytes", what))
    if wish.container is Container.NONE:
        return found
    if not job.nccl_test.image:
        found += import_problems(job, wish)
    return [*found, *_mount_problems(step)]


def _mount_problems(step: NcclStep) -> list[Problem]:
    found = []
    for key, mount in step.mounts():
        try:
            written(step.wish.container, mount)
        except UsageError as error:
            found.append(Problem(key, error.what, error.remedy))
    return found


def _name(step: NcclStep) -> str:
    return f"{step.job.name}-{step.size.library.lower()}"


def _directives(step: NcclStep) -> list[str]:
    slurm = step.job.slurm
    options = {
        "job-name": _name(step),
        "partition": slurm.partition,
        "account": slurm.account,
        "qos": slurm.qos,
        "constraint": slurm.constraint,
        "reservation": slurm.reservation,
        "nodes": f"{step.job.nodes}",
        "ntasks-per-node": f"{step.sku.gpus}",
        "cpus-per-task": f"{step.sku.cpus // step.sku.gpus}",
        "gpus-per-node": f"{step.sku.gpus}",
        "mem": "0",
        "time": f"{math.ceil(step.job.nccl_test.time_s / _MINUTE_S)}",
        "output": "%x-%j.log",
    }
    lines = [sbatch_directive(name, value) for name, value in options.items() if value]
    return [*lines, sbatch_directive("exclusive")]


def _said(step: NcclStep) -> str:
    """What the report reads from the log."""
    nccl = step.job.nccl_test
    said = f"sku={step.sku.name} ranks={step.job.nodes * step.sku.gpus} threshold={nccl.threshold:g}"
    return said + (f" expected-gbps={nccl.expected_gbps:g}" if nccl.expected_gbps is not None else "")
