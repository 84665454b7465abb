"""What a job cannot be under Slurm, or in a certain kind of container."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from azcp_runtime.contract import UsageError
from azcp_runtime.contract.options import AUTO

from azcp_kit.quoting.image_uri import pinned_image
from azcp_kit.spec.job import Form, JobSpec, StorageKind
from azcp_kit.spec.problems import Problem
from azcp_kit.targets.slurm.mounts import job_mounts, written
from azcp_kit.targets.slurm.wish import Container, Launch, Wish

_LONGEST_SIGNAL_S = 65535


@dataclass(frozen=True, slots=True)
class _Rule:
    """One thing that cannot be: is it broken, at which key, what, and what to write."""

    is_broken: bool
    key: str
    what: str
    remedy: str = ""


def sbatch_problems(job: JobSpec, wish: Wish) -> list[Problem]:
    """Everything that stands against it."""
    rules = (*_kubernetes_only(job), *_times(job), *_command(job), _rails(job, wish))
    found = [Problem(rule.key, rule.what, rule.remedy) for rule in rules if rule.is_broken]
    if wish.container is Container.NONE:
        return [*found, *_without_container(job)]
    mounts = [
        problem
        for key, mount in job_mounts(job)
        for problem in _refusals(key, partial(written, wish.container, mount))
    ]
    return [*found, *_image(job, wish), *mounts]


def import_problems(job: JobSpec, wish: Wish) -> list[Problem]:
    """What stands against an import of its image.

    Raises:
        UsageError: there is no image without a container.
    """
    if wish.container is Container.NONE:
        raise UsageError("--container none has no image to import")
    return list(_image(job, wish))


def _kubernetes_only(job: JobSpec) -> Sequence[_Rule]:
    auth = job.auth
    return (
        _Rule(bool(job.queue), "queue", "is Kueue's", "write slurm.partition or slurm.qos"),
        _Rule(bool(job.priority_class), "priority-class", "is Kubernetes'", "write slurm.qos"),
        _Rule(bool(job.node_selector), "node-selector", "is Kubernetes'", "write slurm.constraint"),
        _Rule(
            bool(auth.secret),
            "auth.secret",
            "is a Secret of Kubernetes",
            "write slurm.sas-file, or export AZCP_SAS before sbatch",
        ),
        _Rule(
            bool(auth.identity),
            "auth.identity",
            "is a workload identity, which pods alone have",
            "write auth.kubelet-identity, the client id of the VMs' own identity",
        ),
        _Rule(
            job.storage.kind is not StorageKind.HOST_PATH,
            "storage.kind",
            f"{job.storage.kind.value} is Kubernetes'",
            "write host-path, a folder of the nodes",
        ),
    )


def _times(job: JobSpec) -> Sequence[_Rule]:
    grace_s, deadline_s = job.slurm.grace_s, job.limits.deadline_s
    return (
        _Rule(
            bool(deadline_s) and grace_s >= deadline_s,
            "slurm.grace",
            "is not shorter than limits.deadline, and the signal would come at once",
        ),
        _Rule(grace_s > _LONGEST_SIGNAL_S, "slurm.grace", f"is longer than {_LONGEST_SIGNAL_S} s"),
    )


def _command(job: JobSpec) -> Sequence[_Rule]:
    command, slurm = job.command, job.slurm
    return (
        _Rule(
            command.image != job.image and not command.run,
            "command.image",
            "is set, but there is no command",
            "write command.run, or leave it out",
        ),
        _Rule(
            slurm.tasks_per_node > 1 and command.form is not Form.MPI,
            "slurm.tasks-per-node",
            "is for an MPI program: torchrun starts a node's processes itself, and a plain command runs once",
            'write command.form = "mpi"',
        ),
    )


def _rails(job: JobSpec, wish: Wish) -> _Rule:
    return _Rule(
        job.rails == AUTO and wish.launch is Launch.PMIX,
        "rails",
        "is auto, but srun --mpi=pmix must be told how many tasks a node gets",
        "write a number, or leave --launch pmix away",
    )


def _without_container(job: JobSpec) -> Iterator[Problem]:
    if job.command.image != job.image:
        yield Problem(
            "command.image",
            "is another image, but without a container the command runs on the node itself",
            "give --container, or leave it out",
        )
    for key, value in (
        ("images", job.slurm.images),
        ("mounts", job.slurm.mounts),
        ("stage", job.slurm.stage),
    ):
        if value:
            yield Problem(
                f"slurm.{key}", "is set, but there is no container", "give --container, or leave it out"
            )


def _image(job: JobSpec, wish: Wish) -> Iterator[Problem]:
    yield from _refusals("image", lambda: pinned_image(job.image))
    if job.command.image != job.image:
        yield from _refusals("command.image", lambda: pinned_image(job.command.image))
    if not job.slurm.images:
        yield Problem("slurm.images", "is missing", "a folder that all nodes see, for the image's file")
    # enroot puts the path of an image that it starts between two of them, for a shell.
    quoted = {"slurm.images": job.slurm.images, "storage.path": job.storage.path if job.slurm.stage else ""}
    for key, path in quoted.items():
        if wish.container is Container.ENROOT and "'" in path:
            yield Problem(key, "has a ' in it, and enroot starts no image from there")


def _refusals(key: str, write: Callable[[], object]) -> Iterator[Problem]:
    try:
        write()
    except UsageError as error:
        yield Problem(key, error.what, error.remedy)
