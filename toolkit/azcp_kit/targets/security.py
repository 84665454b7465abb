"""Security contexts by Pod Security Standard, and what each level can and cannot do."""

from __future__ import annotations

from typing import Any, Final

from azcp_kit.manifest.write import Comment
from azcp_kit.spec.job import JobSpec, Security

_IPC_LOCK: Final = "IPC_LOCK"


def distributor_security(job: JobSpec, *, read_only_root: bool) -> dict[Any, Any]:
    """Of a container that runs our commands.

    Args:
        job: whose.
        read_only_root: whether nothing but our commands runs in it.
    """
    read_only = {"readOnlyRootFilesystem": True} if read_only_root else {}
    if job.security is Security.RESTRICTED:
        return {**_restricted(), **read_only}
    if job.resources.rdma and job.security is Security.PRIVILEGED and job.is_root:
        return {**_locking({"runAsUser": 0}), **read_only}
    comments = {Comment(_no_lock(job)): None} if job.resources.rdma else {}
    user = {"runAsUser": 0} if job.is_root else {}
    return {**comments, **user, "allowPrivilegeEscalation": False, **read_only}


def launcher_security(job: JobSpec) -> dict[Any, Any]:
    """Of a container that only reaches the others: as the same user, for that is who they let in."""
    if job.security is Security.RESTRICTED:
        return _restricted()
    return {**({"runAsUser": 0} if job.is_root else {}), "allowPrivilegeEscalation": False}


def consumer_security(job: JobSpec) -> dict[Any, Any]:
    """Of a container that runs the user's own command in the user's own image."""
    if job.security is Security.RESTRICTED:
        return _restricted()
    return _locking({}) if job.resources.rdma and job.security is Security.PRIVILEGED and job.is_root else {}


def pod_security(job: JobSpec) -> dict[Any, Any]:
    """Of the pod."""
    found: dict[Any, Any] = {}
    if job.user == 0:
        found |= {"runAsUser": 0}
    elif job.user:
        found |= {"runAsNonRoot": True, "runAsUser": job.user, "runAsGroup": job.user}
        # A host path stays as it is; a Secret's files become readable.
        found |= {"fsGroup": job.user, "fsGroupChangePolicy": "OnRootMismatch"}
    if job.security is not Security.PRIVILEGED:
        found |= {"seccompProfile": {"type": "RuntimeDefault"}}
    return found


def level_comment(job: JobSpec) -> str:
    """What the namespace must allow, and what follows for RDMA."""
    level = f"Pod Security Standard: {job.security.value}"
    if not job.resources.rdma or (job.security is Security.PRIVILEGED and job.is_root):
        return f"{level}."
    return f"{level}; {_no_lock(job)[0].lower()}{_no_lock(job)[1:]}"


def _no_lock(job: JobSpec) -> str:
    reason = (
        "the level forbids IPC_LOCK"
        if job.is_root
        else "no capability has an effect for another user than root"
    )
    return f"RDMA needs an unlimited memlock from the nodes' container runtime: {reason}."


def _locking(user: dict[str, Any]) -> dict[Any, Any]:
    comment = Comment("IPC_LOCK lets RDMA pin its buffers; it has an effect for root alone.")
    return {comment: None, **user, "capabilities": {"add": [_IPC_LOCK]}}


def _restricted() -> dict[str, Any]:
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
