"""Warm-up: the data set lies on every node before anybody asks for it."""

from __future__ import annotations

from typing import Final

from azcp_runtime.contract.image import BIN

from azcp_kit.manifest.write import Comment, Document
from azcp_kit.spec.job import JobSpec, WarmupForm
from azcp_kit.targets.argv import alone_argv
from azcp_kit.targets.containers import distributor
from azcp_kit.targets.indexed_job import ending, indexed
from azcp_kit.targets.labels import metadata, selector
from azcp_kit.targets.pod import node_pod
from azcp_kit.targets.volumes import Volume, data_volume, shm_volume, state_volume

_COMPONENT: Final = "warmup"
_HOLD: Final = {
    "name": "hold",
    "command": [f"{BIN}/azcp-hold"],
    "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}},
}


def warmup(job: JobSpec) -> list[Document]:
    """A Job with a pod on so many nodes, or a DaemonSet with one on each."""
    volumes = [data_volume(job), shm_volume(job), state_volume()]
    return [_daemonset(job, volumes) if job.warmup is WarmupForm.DAEMONSET else _jobs(job, volumes)]


def host_names(job: JobSpec) -> list[str]:
    """The longest name that a pod will have."""
    return [] if job.warmup is WarmupForm.DAEMONSET else [f"{job.name}-{job.nodes - 1}"]


def _jobs(job: JobSpec, volumes: list[Volume]) -> Document:
    download = distributor(job, alone_argv(job), volumes)
    template = node_pod(job, _COMPONENT, containers=[download], volumes=volumes, restart="Never")
    limits = job.limits
    spec = {
        Comment("Of each node for itself."): None,
        "backoffLimitPerIndex": limits.retries,
        **ending(job),
        Comment(
            "A pod that has finished makes room: one that comes late may land on a node that is warm already."
        ): None,
        Comment('Where every node must be covered, take warmup = "daemonset".'): None,
        **indexed(job),
        "template": template,
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata(job, queue=True), "spec": spec}


def _daemonset(job: JobSpec, volumes: list[Volume]) -> Document:
    download = distributor(job, alone_argv(job), volumes)
    hold = {**_HOLD, "image": job.image, "securityContext": download["securityContext"]}
    spec = {
        "selector": {"matchLabels": selector(job, _COMPONENT)},
        Comment("Nodes download side by side when the data set changes."): None,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}},
        "template": node_pod(job, _COMPONENT, init=[download], containers=[hold], volumes=volumes),
    }
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata(job), "spec": spec}
