"""JobSet: one replicated Job whose nodes distribute among themselves, restarted as a whole."""

from __future__ import annotations

from typing import Final

from azcp_kit.manifest.write import Comment, Document
from azcp_kit.spec.job import JobSpec
from azcp_kit.targets.argv import host_range
from azcp_kit.targets.containers import field
from azcp_kit.targets.every_node import Peers, every_node_pod
from azcp_kit.targets.indexed_job import COMPLETION_INDEX, indexed
from azcp_kit.targets.labels import metadata, service_name

_GROUP: Final = "node"


def jobset(job: JobSpec) -> list[Document]:
    """One JobSet; it makes the Service itself."""
    stem = f"{job.name}-{_GROUP}-0"
    peers = Peers(host_range(stem, job.nodes, service_name(job)), {"valueFrom": field(COMPLETION_INDEX)})
    # The pods' subdomain is JobSet's to set.
    template = {
        "spec": {
            "backoffLimit": 0,
            **(
                {Comment("Of each try."): None, "activeDeadlineSeconds": job.limits.deadline_s}
                if job.limits.deadline_s
                else {}
            ),
            **indexed(job),
            "template": every_node_pod(job, "jobset", peers, restart="Never"),
        }
    }
    spec = {
        Comment("The nodes look for each other before any of them is ready."): None,
        "network": {
            "enableDNSHostnames": True,
            "publishNotReadyAddresses": True,
            "subdomain": service_name(job),
        },
        Comment(
            "Any node's failure starts all of them again; files that are whole stay on a host path."
        ): None,
        "failurePolicy": {"maxRestarts": job.limits.retries},
        **({"ttlSecondsAfterFinished": job.limits.ttl_s} if job.limits.ttl_s else {}),
        "replicatedJobs": [{"name": _GROUP, "replicas": 1, "template": template}],
    }
    return [
        {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": metadata(job, queue=True),
            "spec": spec,
        }
    ]


def host_names(job: JobSpec) -> list[str]:
    """The longest name that a pod will have."""
    return [f"{job.name}-{_GROUP}-0-{job.nodes - 1}"]
