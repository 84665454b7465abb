"""StatefulSet: nodes that distribute among themselves when they start together, and serve from then on."""

from __future__ import annotations

from azcp_kit.manifest.write import Comment, Document
from azcp_kit.spec.job import JobSpec
from azcp_kit.targets.argv import host_range
from azcp_kit.targets.containers import field
from azcp_kit.targets.every_node import Peers, every_node_pod
from azcp_kit.targets.labels import metadata, selector, service_name
from azcp_kit.targets.service import headless_service


def statefulset(job: JobSpec) -> list[Document]:
    """The Service and the StatefulSet."""
    peers = Peers(
        host_range(job.name, job.nodes, service_name(job)),
        {"valueFrom": field("metadata.labels['apps.kubernetes.io/pod-index']")},
        own_name={"valueFrom": field("metadata.name")},
        # A pod that comes back later has no peers: they serve already. It downloads what it lacks by itself.
        options=("--alone-after", str(job.limits.wait_s)),
    )
    spec = {
        Comment(
            "A pod that comes back later waits for peers as long as for the first start (limits.wait)."
        ): None,
        "replicas": job.nodes,
        "serviceName": service_name(job),
        Comment("All pods at once: they wait for each other before the first of them is ready."): None,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": selector(job, "statefulset")},
        "template": every_node_pod(job, "statefulset", peers),
    }
    return [
        headless_service(job, "statefulset"),
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata(job, queue=True), "spec": spec},
    ]


def host_names(job: JobSpec) -> list[str]:
    """The longest name that a pod will have."""
    return [f"{job.name}-{job.nodes - 1}"]
