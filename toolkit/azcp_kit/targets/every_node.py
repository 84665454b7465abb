"""Pods that distribute among themselves before the user's container begins: what the alike kinds share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from azcp_runtime.contract.image import ENV_INDEX

from azcp_kit.spec.job import JobSpec
from azcp_kit.targets.argv import consumer_argv, every_node_argv
from azcp_kit.targets.containers import PORT, Place, consumer, distributor
from azcp_kit.targets.pod import node_pod
from azcp_kit.targets.volumes import data_volume, keys_volume, shm_volume, state_volume


def ssh_secret_name(job: JobSpec) -> str:
    """The Secret with the job's key pair; mpi-operator and Volcano make one that is called JOB-ssh."""
    return f"{job.name}-azcp-ssh"


@dataclass(frozen=True, slots=True)
class Peers:
    """How the pods of a kind know each other.

    Args:
        hosts: the names of all as one range.
        index: an entry of env without its name: where the user's command has its node's number from.
        own_name: the same for azcp-launch, which takes the number or a pod's name that ends in it; None where
            the kind itself tells each container its number.
        has_keys: whether the kind itself mounts a key pair.
        options: further options of azcp-launch.
    """

    hosts: str
    index: dict[str, Any]
    own_name: dict[str, Any] | None = None
    has_keys: bool = False
    options: tuple[str, ...] = ()

    @property
    def master(self) -> str:
        """The first of them."""
        stem, _, rest = self.hosts.partition("[")
        return f"{stem}0{rest.partition(']')[2]}"


def every_node_pod(
    job: JobSpec, component: str, peers: Peers, *, restart: str = "", subdomain: str = ""
) -> dict[str, Any]:
    """The template of a pod: distribute, then the user's container with its place in the job."""
    init = phase_one(job, peers)
    volumes = [data_volume(job), shm_volume(job), state_volume(), *_keys(job, peers)]
    containers, before = [init], []
    if job.command.run:
        seen = [data_volume(job), shm_volume(job)]
        place = Place(peers.index, peers.master)
        containers, before = [consumer(job, consumer_argv(job), seen, place)], [init]
    return node_pod(
        job,
        component,
        containers=containers,
        init=before,
        volumes=volumes,
        restart=restart,
        subdomain=subdomain,
    )


def phase_one(job: JobSpec, peers: Peers, options: Sequence[str] = ()) -> dict[Any, Any]:
    """The container that distributes."""
    volumes = [data_volume(job), shm_volume(job), state_volume(), *_keys(job, peers)]
    index = [{"name": ENV_INDEX, **peers.own_name}] if peers.own_name else []
    argv = every_node_argv(job, peers.hosts, (*peers.options, *options))
    return {**distributor(job, argv, volumes, index), "ports": [PORT]}


def _keys(job: JobSpec, peers: Peers) -> list[Any]:
    return [] if peers.has_keys else [keys_volume(ssh_secret_name(job))]
