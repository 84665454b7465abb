"""Names and labels of what a job makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from azcp_kit.manifest.write import Comment
from azcp_kit.spec.job import JobSpec

KUEUE_QUEUE: Final = "kueue.x-k8s.io/queue-name"
_WORKLOAD_IDENTITY: Final = "azure.workload.identity/use"


def selector(job: JobSpec, component: str) -> dict[str, str]:
    """What only the pods of this kind and job have: those of another kind may be on the same nodes."""
    return {"app.kubernetes.io/instance": job.name, "app.kubernetes.io/component": component}


def service_name(job: JobSpec) -> str:
    """Of the Service that names the pods; mpi-operator and Volcano make one that is called like the job."""
    return f"{job.name}-nodes"


def metadata(job: JobSpec, *, name: str = "", queue: bool = False) -> dict[str, Any]:
    """Of an object that is made.

    Args:
        job: whose.
        name: of the object; the job's if empty.
        queue: whether Kueue admits this object.
    """
    labels: dict[Any, Any] = {**_labels(job)}
    if queue and job.queue:
        labels |= {Comment("Kueue starts the job once the queue has room for all of its pods."): None}
        labels |= {KUEUE_QUEUE: job.queue}
    return {
        "name": name or job.name,
        **({"namespace": job.namespace} if job.namespace else {}),
        "labels": labels,
        **({"annotations": dict(job.annotations)} if job.annotations else {}),
    }


def pod_metadata(job: JobSpec, component: str) -> dict[str, Any]:
    """Of the pods."""
    identity = {_WORKLOAD_IDENTITY: "true"} if job.auth.identity else {}
    annotations: Mapping[str, str] = job.annotations
    return {
        "labels": {**selector(job, component), **_labels(job), **identity},
        **({"annotations": dict(annotations)} if annotations else {}),
    }


def _labels(job: JobSpec) -> dict[str, str]:
    return {
        "app.kubernetes.io/instance": job.name,
        "app.kubernetes.io/managed-by": "azcp-kit",
        **job.labels,
    }
