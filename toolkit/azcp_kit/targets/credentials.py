"""How a container proves who it is to the account: by names and references, never by a value."""

from __future__ import annotations

from typing import Any

from azcp_kit.spec.job import JobSpec


def credential_variables(job: JobSpec) -> list[dict[str, Any]]:
    """Environment of a container that reads from the account.

    A workload identity needs none: its webhook adds the pod's variables and its token.
    """
    auth = job.auth
    if auth.secret:
        reference = {"secretKeyRef": {"name": auth.secret, "key": auth.secret_key}}
        return [{"name": auth.secret_key, "valueFrom": reference}]
    if auth.kubelet_identity:
        return [{"name": "AZURE_CLIENT_ID", "value": auth.kubelet_identity}]
    return []


def service_account(job: JobSpec, *, token: bool = False) -> dict[str, Any]:
    """The pod's own.

    Args:
        job: whose.
        token: whether the pod asks the cluster's API for something; a workload identity's token is another.
    """
    named = {"serviceAccountName": job.auth.service_account or job.name} if job.auth.identity else {}
    return named if token else {**named, "automountServiceAccountToken": False}
