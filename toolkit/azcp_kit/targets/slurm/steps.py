"""The steps of a batch job, as words of its script: what srun is asked for, and what it starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from azcp_runtime.contract.image import BIN

from azcp_kit.spec.job import Form, JobSpec
from azcp_kit.targets.argv import consumer_argv, distribute_options, fabric_options, rail_options
from azcp_kit.targets.slurm.directives import resources


def srun_words(job: JobSpec, tasks_per_node: int) -> list[str]:
    """The words of srun, with all that it would else take from variables of whoever has submitted the job.

    Args:
        job: whose.
        tasks_per_node: of the step.
    """
    asked = {
        "export": "ALL",
        "nodes": str(job.nodes),
        "ntasks": str(job.nodes * tasks_per_node),
        "ntasks-per-node": str(tasks_per_node),
        **resources(job, tasks_per_node),
        # Nobody but the program itself knows which cores are near to its devices.
        "cpu-bind": "none",
    }
    return ["srun", *(f"--{name}={value}" for name, value in asked.items() if value)]


def distribute_words(job: JobSpec) -> list[str]:
    """SOURCE, DEST and the options, for both ways to launch."""
    sas_file = ["--sas-file", job.slurm.sas_file] if job.slurm.sas_file else []
    # Nobody asks Slurm for HCAs: a node has those of its VM size.
    fabric = fabric_options(job, is_wanted=bool(job.resources.rdma or (job.sku and job.sku.hcas)))
    return [*distribute_options(job), *rail_options(job), *fabric, *sas_file]


def launch_words(job: JobSpec) -> list[str]:
    """Phase 1 by our own launcher; its key seed comes on standard input, its port from the script."""
    wait = ["--wait", str(job.limits.wait_s)]
    options = [*wait, "--nodes", str(job.nodes), "--every-node", "--key-seed", "-"]
    return [f"{BIN}/azcp-launch", *distribute_words(job), *options]


def rank_words(job: JobSpec) -> list[str]:
    """Phase 1 where srun makes the MPI world."""
    return [
        f"{BIN}/azcp-distribute",
        *distribute_words(job),
        "--expect-ranks",
        str(job.nodes * job.most_rails),
    ]


def variable_words(job: JobSpec) -> list[str]:
    """Variables of phase 2, which are set inside of the step."""
    return [f"{name}={value}" for name, value in job.command.env.items()]


def command_words(job: JobSpec) -> Sequence[str]:
    """The command of phase 2; none where only the data is wanted."""
    if not job.command.run:
        return ()
    if job.command.form is Form.MPI:
        return job.command.run
    return consumer_argv(replace(job, resources=replace(job.resources, gpus=job.slurm.gpus)))
