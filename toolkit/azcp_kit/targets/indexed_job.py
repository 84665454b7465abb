"""Indexed Job: an init container distributes, a second image consumes."""

from __future__ import annotations

from typing import Any, Final

from azcp_kit.manifest.write import Comment, Document
from azcp_kit.spec.job import JobSpec
from azcp_kit.targets.argv import host_range
from azcp_kit.targets.containers import field
from azcp_kit.targets.every_node import Peers, every_node_pod
from azcp_kit.targets.labels import metadata, service_name
from azcp_kit.targets.service import headless_service

COMPLETION_INDEX: Final = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


def indexed_job(job: JobSpec) -> list[Document]:
    """The Service and the Job."""
    peers = Peers(host_range(job.name, job.nodes, service_name(job)), {"valueFrom": field(COMPLETION_INDEX)})
    template = every_node_pod(job, "job", peers, restart=restart_policy(job), subdomain=service_name(job))
    spec = {**job_limits(job), **indexed(job), "template": template}
    return [
        headless_service(job, "job"),
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata(job, queue=True), "spec": spec},
    ]


def host_names(job: JobSpec) -> list[str]:
    """The longest name that a pod will have."""
    return [f"{job.name}-{job.nodes - 1}"]


def indexed(job: JobSpec) -> dict[str, Any]:
    """So many pods, each with its number, all at the same time."""
    return {"completionMode": "Indexed", "completions": job.nodes, "parallelism": job.nodes}


def restart_policy(job: JobSpec) -> str:
    """In place, so that a volume of the pod's own keeps what is whole; not at all without retries."""
    return "OnFailure" if job.limits.retries else "Never"


def job_limits(job: JobSpec) -> dict[Any, Any]:
    """How often and how long."""
    limits = job.limits
    # The Job fails when its containers have been restarted that often, not when they would be once more.
    retries = {"backoffLimit": limits.retries * job.nodes + 1 if limits.retries else 0}
    reason = "A node that fails ends the try on all of them: one retry of the job is one restart per node."
    return {
        **({Comment(reason): None} if limits.retries else {}),
        **retries,
        **ending(job),
    }


def ending(job: JobSpec) -> dict[str, int]:
    """When it is given up, and when what has ended is removed."""
    limits = job.limits
    return {
        **({"activeDeadlineSeconds": limits.deadline_s} if limits.deadline_s else {}),
        **({"ttlSecondsAfterFinished": limits.ttl_s} if limits.ttl_s else {}),
    }
