"""Argument lists of our commands in the image, as a job.toml asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from azcp_runtime.contract.image import BIN

from azcp_kit.spec.job import Form, JobSpec

MASTER_PORT: Final = 29500
"""torchrun's own default, and azcp-launch's."""

_OF_THE_FABRIC: Final = ("--allow-tcp", "--require-rdma", "--no-broadcast")
_MIB: Final = 1 << 20
_ALONE: Final = "--no-broadcast"


def launcher_argv(job: JobSpec) -> list[str]:
    """Both phases from a launcher that finds the nodes in the operator's hostfile."""
    where = ["--command-on", "launcher"] if job.command.form is Form.MPI else []
    return [*_launch(job), "--nodes", str(job.nodes), *where, *_command(job)]


def every_node_argv(job: JobSpec, hosts: str, extra: Sequence[str] = ()) -> list[str]:
    """Phase 1 from all nodes alike: the first one leads.

    Args:
        job: whose.
        hosts: their names as one range, ``llama-[0-15].llama``.
        extra: further options.
    """
    return [*_launch(job), "--hosts", hosts, "--every-node", *extra]


def alone_argv(job: JobSpec) -> list[str]:
    """A plain download of one node."""
    return [f"{BIN}/azcp-distribute", *distribute_options(job), _ALONE]


def is_alone(argv: Sequence[str]) -> bool:
    """Whether a command brings the data by itself, as one rank, whatever the job's rails are."""
    return _ALONE in argv


def consumer_argv(job: JobSpec) -> list[str]:
    """The user's command in a container of its own."""
    return list(job.command.run) if job.command.form is Form.PLAIN else _torchrun(job)


def sshd_argv() -> list[str]:
    """The ssh server of a node."""
    return [f"{BIN}/azcp-sshd"]


def host_range(stem: str, nodes: int, domain: str) -> str:
    """The names of so many pods as one word."""
    return f"{stem}-[0-{nodes - 1}].{domain}"


def _launch(job: JobSpec) -> list[str]:
    wait = ["--wait", str(job.limits.wait_s)]
    fabric = fabric_options(job, is_wanted=bool(job.resources.rdma))
    return [f"{BIN}/azcp-launch", *distribute_options(job), *rail_options(job), *fabric, *wait]


def rail_options(job: JobSpec) -> list[str]:
    """How many ranks a node gets, where the job says it."""
    return [] if job.rails is None else ["--rails", str(job.rails)]


def fabric_options(job: JobSpec, *, is_wanted: bool) -> list[str]:
    """That TCP in the place of RDMA ends the run: it would go on at a tenth of the speed, without a word.

    Args:
        job: whose; what its own options say of the fabric stands.
        is_wanted: it asks for RDMA.
    """
    is_said = any(option in job.distribute.options for option in _OF_THE_FABRIC)
    return ["--require-rdma"] if is_wanted and job.nodes > 1 and not is_said else []


def distribute_options(job: JobSpec) -> list[str]:
    """SOURCE, DEST and what the job says of how the data is brought."""
    distribute = job.distribute
    memory = f"{-(-distribute.memory_bytes // _MIB)}MiB"
    concurrency = ["--concurrency", str(distribute.concurrency)] if distribute.concurrency else []
    return [job.source, job.dest, "--memory", memory, *concurrency, *distribute.options]


def _command(job: JobSpec) -> list[str]:
    if not job.command.run:
        return []
    return ["--", *(_torchrun(job) if job.command.form is Form.TORCHRUN else job.command.run)]


def _torchrun(job: JobSpec) -> list[str]:
    """Its node's rank and the first node's address come from PET_ variables: no shell need fill them in."""
    return [
        "torchrun",
        f"--nnodes={job.nodes}",
        f"--nproc-per-node={job.resources.gpus or 1}",
        *job.command.run,
    ]
