"""The containers of a pod: the distributor's and the user's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from azcp_runtime.contract.image import ENV_STATE_DIR, SSH_PORT

from azcp_kit.manifest.write import Comment
from azcp_kit.quantity import quantity
from azcp_kit.spec.amounts import distributor_bytes
from azcp_kit.spec.job import JobSpec
from azcp_kit.targets.argv import MASTER_PORT, is_alone
from azcp_kit.targets.credentials import credential_variables
from azcp_kit.targets.literal import literals, variables
from azcp_kit.targets.security import consumer_security, distributor_security
from azcp_kit.targets.volumes import STATE, Volume

DISTRIBUTE: Final = "distribute"
CONSUME: Final = "consume"

PORT: Final = {"name": "azcp-ssh", "containerPort": SSH_PORT}
READY: Final = {"tcpSocket": {"port": SSH_PORT}, "periodSeconds": 2}
"""azcp-sshd listens only once it can answer."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node stands in the job, for the user's command.

    Args:
        index: an entry of env: where NODE_RANK comes from.
        master: host name of the first node.
    """

    index: dict[str, Any]
    master: str


def distributor(
    job: JobSpec, argv: Sequence[str], volumes: Sequence[Volume], env: Sequence[dict[str, Any]] = ()
) -> dict[Any, Any]:
    """A container that runs one of our commands and ends, or is an ssh server for one.

    Args:
        job: whose.
        argv: of the command.
        volumes: what it sees.
        env: further variables.
    """
    memory = quantity(distributor_bytes(job, 1 if is_alone(argv) else None))
    rdma = {job.resources.rdma: job.resources.rdma_count} if job.resources.rdma else {}
    return {
        "name": DISTRIBUTE,
        "image": job.image,
        "command": literals(argv),
        "env": [{"name": ENV_STATE_DIR, "value": STATE}, *credential_variables(job), *env],
        "resources": {
            Comment("distribute.memory, what the runtime itself takes, and /dev/shm."): None,
            "requests": {**_cpu(job), "memory": memory},
            "limits": {"memory": memory, **rdma},
        },
        "securityContext": distributor_security(job, read_only_root=True),
        "volumeMounts": [volume.as_mount() for volume in volumes],
    }


def node(job: JobSpec, argv: Sequence[str], volumes: Sequence[Volume]) -> dict[Any, Any]:
    """A node's container of an image that holds both: the ssh server first, then the user's command."""
    return {
        "name": "node",
        "image": job.image,
        "command": literals(argv),
        "env": [
            {"name": ENV_STATE_DIR, "value": STATE},
            *(credential_variables(job) if not job.auth.secret else []),
            *command_variables(job),
        ],
        "ports": [PORT],
        "readinessProbe": READY,
        "resources": _both_phases(job),
        "securityContext": distributor_security(job, read_only_root=False),
        "volumeMounts": [volume.as_mount() for volume in volumes],
    }


def consumer(
    job: JobSpec, argv: Sequence[str], volumes: Sequence[Volume], place: Place | None
) -> dict[Any, Any]:
    """The user's container, which begins when the data is there."""
    env = [*(_place(job, place) if place else []), *command_variables(job)]
    probe = {"readinessProbe": {"tcpSocket": {"port": job.command.port}}} if job.command.port else {}
    ports = {"ports": [{"containerPort": job.command.port}]} if job.command.port else {}
    security = consumer_security(job)
    return {
        "name": CONSUME,
        "image": job.command.image,
        "command": literals(argv),
        **({"env": env} if env else {}),
        **ports,
        **probe,
        **({"resources": found} if (found := _consumption(job)) else {}),
        **({"securityContext": security} if security else {}),
        "volumeMounts": [volume.as_mount() for volume in volumes],
    }


def field(path: str) -> dict[str, Any]:
    """A value that the kubelet knows."""
    return {"fieldRef": {"fieldPath": path}}


def command_variables(job: JobSpec) -> list[dict[str, Any]]:
    """What the user gave for the command."""
    return variables(job.command.env)


def _place(job: JobSpec, place: Place) -> list[dict[str, Any]]:
    """As azcp-launch sets them; the PET_ ones are torchrun's own."""
    fixed = {
        "NNODES": str(job.nodes),
        "MASTER_ADDR": place.master,
        "MASTER_PORT": str(MASTER_PORT),
        "PET_MASTER_ADDR": place.master,
        "PET_MASTER_PORT": str(MASTER_PORT),
    }
    ranks = [{"name": name, **place.index} for name in ("RANK", "NODE_RANK", "PET_NODE_RANK")]
    return [*ranks, *({"name": name, "value": value} for name, value in fixed.items())]


def _both_phases(job: JobSpec) -> dict[Any, Any]:
    devices = _devices(job)
    needed = quantity(distributor_bytes(job))
    memory = job.resources.memory
    if memory:
        requests: dict[Any, Any] = {**_cpu(job), "memory": memory}
        limits: dict[str, object] = {"memory": memory, **devices}
    else:
        requests = {Comment("What distributing takes; resources.memory is for both phases."): None}
        requests |= {**_cpu(job), "memory": needed}
        limits = {**devices}
    return {"requests": requests, **({"limits": limits} if limits else {})}


def _consumption(job: JobSpec) -> dict[str, Any]:
    memory = {"memory": job.resources.memory} if job.resources.memory else {}
    requests, limits = {**_cpu(job), **memory}, {**memory, **_devices(job)}
    return {**({"requests": requests} if requests else {}), **({"limits": limits} if limits else {})}


def _devices(job: JobSpec) -> dict[str, int]:
    resources = job.resources
    # Without a command nothing uses them, and others can.
    gpus = resources.gpus if job.command.run else 0
    return {
        **({resources.gpu_resource: gpus} if gpus else {}),
        **({resources.rdma: resources.rdma_count} if resources.rdma else {}),
    }


def _cpu(job: JobSpec) -> dict[str, str]:
    return {"cpu": job.resources.cpu} if job.resources.cpu else {}
