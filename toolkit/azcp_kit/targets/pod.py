"""The one pod builder: every kind of workload wraps what it gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from azcp_kit.manifest.write import Comment
from azcp_kit.spec.job import JobSpec
from azcp_kit.targets.credentials import service_account
from azcp_kit.targets.labels import pod_metadata, selector
from azcp_kit.targets.security import level_comment, pod_security
from azcp_kit.targets.volumes import Volume

_INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
_ARCH: Final = "kubernetes.io/arch"


def node_pod(
    job: JobSpec,
    component: str,
    *,
    containers: Sequence[dict[Any, Any]],
    volumes: Sequence[Volume],
    init: Sequence[dict[Any, Any]] = (),
    restart: str = "",
    subdomain: str = "",
    token: bool = False,
) -> dict[str, Any]:
    """The template of a pod that has a node for itself.

    Args:
        job: whose.
        component: which kind of workload the pods are, so that other pods of the job do not count as theirs.
        containers: side by side.
        volumes: of all containers.
        init: containers before them, in order.
        restart: the restart policy; empty where the kind sets it.
        subdomain: name of the Service under which the pod has a name.
        token: whether the pod asks the cluster's API for something.
    """
    spec = {
        Comment(level_comment(job)): None,
        **({"restartPolicy": restart} if restart else {}),
        **({"subdomain": subdomain} if subdomain else {}),
        **pod_basics(job, token=token),
        **host_network(job),
        "affinity": one_per_node(job, component),
        **node_selector(job),
        **({"initContainers": list(init)} if init else {}),
        "containers": list(containers),
        "volumes": [volume.as_volume() for volume in volumes],
    }
    return {"metadata": pod_metadata(job, component), "spec": spec}


def launcher_pod(job: JobSpec, container: dict[Any, Any], volumes: Sequence[Volume]) -> dict[str, Any]:
    """The template of a pod that only launches: any node of the architecture will do."""
    spec = {
        **pod_basics(job),
        **_selector(job, {_ARCH: job.sku.arch} if job.sku else {}),
        "containers": [container],
        "volumes": [volume.as_volume() for volume in volumes],
    }
    return {"metadata": pod_metadata(job, "launcher"), "spec": spec}


def pod_basics(job: JobSpec, *, token: bool = False) -> dict[Any, Any]:
    """What every pod of a job has."""
    security = pod_security(job)
    return {
        Comment(
            "Service links would put a variable for each Service of the namespace into the environment."
        ): None,
        "enableServiceLinks": False,
        **service_account(job, token=token),
        **({"imagePullSecrets": [{"name": job.pull_secret}]} if job.pull_secret else {}),
        **({"priorityClassName": job.priority_class} if job.priority_class else {}),
        **({"securityContext": security} if security else {}),
        **_tolerations(job),
    }


def one_per_node(job: JobSpec, component: str) -> dict[str, Any]:
    """Two pods of a job on one node would write the same disk."""
    term = {
        "labelSelector": {"matchLabels": selector(job, component)},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def node_selector(job: JobSpec) -> dict[str, Any]:
    """The nodes of the VM size, and of what the user says of them."""
    return _selector(job, {_INSTANCE_TYPE: job.sku.name} if job.sku else {})


def host_network(job: JobSpec) -> dict[Any, Any]:
    """The nodes' own network, where it is asked for."""
    if not job.host_network:
        return {}
    return {
        Comment("On the node's own network cluster names resolve only with this policy."): None,
        "hostNetwork": True,
        "dnsPolicy": "ClusterFirstWithHostNet",
    }


def _selector(job: JobSpec, implied: dict[str, str]) -> dict[str, Any]:
    chosen = {**implied, **job.node_selector}
    return {"nodeSelector": chosen} if chosen else {}


def _tolerations(job: JobSpec) -> dict[str, Any]:
    entries = [
        {
            **({"key": each.key} if each.key else {}),
            "operator": each.operator,
            **({"value": each.value} if each.value else {}),
            **({"effect": each.effect} if each.effect else {}),
        }
        for each in job.tolerations
    ]
    return {"tolerations": entries} if entries else {}
