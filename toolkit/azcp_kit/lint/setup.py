"""A script with what surrounds it, so that one rule serves a container as well as a batch job."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from azcp_kit.lint.manifest import Manifest
from azcp_kit.lint.pods import Pod
from azcp_kit.lint.settings import Setting
from azcp_kit.lint.shell import Script


@dataclass(frozen=True, slots=True)
class Setup:
    """What a container or a batch job runs, and under which circumstances."""

    title: str
    script: Script
    settings: tuple[Setting, ...]
    is_pod: bool
    may_be_root: bool
    is_operator_launcher: bool
    """An MPIJob's launcher: the operator gives it the hostfile and Open MPI's settings."""
    nodes: int | None
    """How many nodes or pods take part."""
    slots: int | None
    """Ranks per node that the hostfile has room for; None where nobody says."""


def setups_of(manifest: Manifest) -> Iterator[Setup]:
    """One for each container of each pod template."""
    for pod in manifest.pods:
        is_launcher = pod.kind == "MPIJob" and pod.role == "Launcher"
        for container in pod.containers:
            yield Setup(
                title=f"{pod.title} container {container.name}",
                script=container.script,
                settings=container.settings,
                is_pod=True,
                may_be_root=not pod.user_of(container),
                is_operator_launcher=is_launcher,
                nodes=_nodes(pod, manifest),
                slots=_slots(pod) if is_launcher else None,
            )


def _nodes(pod: Pod, manifest: Manifest) -> int | None:
    worker = manifest.worker_of(pod)
    also_launcher = 1 if pod.owner.at("spec", "runLauncherAsWorker").is_true else 0
    return None if worker.replicas is None else worker.replicas + also_launcher


def _slots(pod: Pod) -> int:
    return pod.owner.at("spec", "slotsPerWorker").number or 1
