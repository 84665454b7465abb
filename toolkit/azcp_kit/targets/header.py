"""The comment at the head of a manifest: what it is, and what must be there before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from azcp_kit.render import render
from azcp_kit.spec.job import JobSpec, Security, StorageKind
from azcp_kit.targets.argv import fabric_options
from azcp_kit.targets.every_node import ssh_secret_name
from azcp_kit.targets.table import TARGETS

_OPERATORS: Final = {
    "mpijob": "mpi-operator 0.6 or later (MPIJob v2beta1)",
    "jobset": "the JobSet controller (v1alpha2)",
    "volcano": "Volcano 1.9 or later",
    "argo": "Argo Workflows 3.4 or later",
}


def header(kind: str, job: JobSpec) -> str:
    """Lines of comment."""
    return render("k8s/header.yaml.j2", kind=kind, job=job, needs=list(_needs(kind, job)))


def _needs(kind: str, job: JobSpec) -> Iterator[str]:
    """What the cluster must have before."""
    if kind in _OPERATORS:
        yield _OPERATORS[kind]
    if TARGETS[kind].needs_secret and not (kind == "volcano" and job.volcano_ssh_plugin):
        yield f"the Secret {ssh_secret_name(job)}, which `azcp-kit generate ssh-secret` makes"
    if kind == "argo":
        yield "a service account that may create and patch workflowtaskresults, as Argo's executor must"
    yield from _account(job)
    yield from _nodes(job)
    if fabric_options(job, is_wanted=bool(job.resources.rdma)) and not TARGETS[kind].is_alone:
        yield "RDMA between the nodes: over TCP it ends with 8, unless distribute.options has --allow-tcp"


def _account(job: JobSpec) -> Iterator[str]:
    """What must be there to read the account."""
    auth = job.auth
    if auth.secret:
        yield f"the Secret {auth.secret} with the key {auth.secret_key}"
    if auth.identity:
        yield f"the service account {auth.service_account or job.name}: `azcp-kit generate identity`"
    if auth.kubelet_identity:
        yield "the nodes' identity with the role Storage Blob Data Reader: `azcp-kit generate identity`"


def _nodes(job: JobSpec) -> Iterator[str]:
    """What the nodes and the namespace must have."""
    if job.storage.kind is StorageKind.HOST_PATH:
        owner = f", writable for uid {job.user}" if job.user else ""
        yield f"{job.storage.path} on each node: its own disk{owner}"
    if job.queue:
        yield f"the queue {job.queue}"
    if job.resources.rdma:
        yield f"a device plugin that offers {job.resources.rdma}"
    if job.security is Security.PRIVILEGED:
        yield "a namespace that allows privileged pods"
