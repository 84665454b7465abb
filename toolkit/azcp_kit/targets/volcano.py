"""Volcano Job: one task whose pods are scheduled as a gang and distribute among themselves."""

from __future__ import annotations

from typing import Any, Final

from azcp_kit.manifest.write import Comment, Document
from azcp_kit.spec.job import JobSpec
from azcp_kit.targets.argv import host_range
from azcp_kit.targets.containers import field
from azcp_kit.targets.every_node import Peers, every_node_pod
from azcp_kit.targets.labels import metadata
from azcp_kit.targets.volumes import KEYS

_TASK: Final = "node"
_TASK_INDEX: Final = "metadata.annotations['volcano.sh/task-index']"


def volcano(job: JobSpec) -> list[Document]:
    """One Job of batch.volcano.sh; its plugins make the Service and, if asked, the key pair."""
    peers = Peers(
        host_range(f"{job.name}-{_TASK}", job.nodes, job.name),
        {"valueFrom": field(_TASK_INDEX)},
        has_keys=job.volcano_ssh_plugin,
    )
    spec = {
        "schedulerName": "volcano",
        Comment("All nodes or none."): None,
        "minAvailable": job.nodes,
        **({"queue": job.queue} if job.queue else {}),
        **({"priorityClassName": job.priority_class} if job.priority_class else {}),
        Comment("How often it starts, the first time included."): None,
        "maxRetry": job.limits.retries + 1,
        **({"ttlSecondsAfterFinished": job.limits.ttl_s} if job.limits.ttl_s else {}),
        "plugins": _plugins(job),
        "policies": _policies(job),
        "tasks": [_task(job, peers)],
    }
    return [
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": metadata(job),
            "spec": spec,
        }
    ]


def host_names(job: JobSpec) -> list[str]:
    """The longest name that a pod will have."""
    return [f"{job.name}-{_TASK}-{job.nodes - 1}"]


def _plugins(job: JobSpec) -> dict[Any, Any]:
    return {
        Comment("The nodes look for each other before any of them is ready."): None,
        "svc": ["--publish-not-ready-addresses=true"],
        Comment("Gives each pod its number."): None,
        "env": [],
        **({"ssh": [f"--ssh-key-file-path={KEYS}"]} if job.volcano_ssh_plugin else {}),
    }


def _policies(job: JobSpec) -> list[dict[str, str]]:
    failed = "RestartJob" if job.limits.retries else "TerminateJob"
    return [
        {"event": "PodFailed", "action": failed},
        {"event": "PodEvicted", "action": failed},
        {"event": "TaskCompleted", "action": "CompleteJob"},
    ]


def _task(job: JobSpec, peers: Peers) -> dict[str, Any]:
    template = every_node_pod(job, "volcano", peers, restart="Never")
    if job.limits.deadline_s:
        template["spec"] |= {Comment("Of each try."): None}
        template["spec"]["activeDeadlineSeconds"] = job.limits.deadline_s
    return {"name": _TASK, "replicas": job.nodes, "template": template}
