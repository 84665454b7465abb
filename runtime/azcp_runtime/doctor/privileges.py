"""How much memory may be locked, and by which right: without it RDMA quietly becomes TCP."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azcp_runtime.contract.units import format_size
from azcp_runtime.doctor.check import Check, ok, without_rdma

_NAME: Final = "memlock"
_IPC_LOCK: Final = 1 << 14
"""CAP_IPC_LOCK of linux/capability.h."""

_INITIAL_IDS: Final = ["0", "0", "4294967295"]
"""What /proc/PID/uid_map says outside of any user namespace."""

_RAISE: Final = (
    "raise the limit where the container starts: --ulimit memlock=-1 (Docker), LimitMEMLOCK=infinity of "
    "containerd or kubelet, PropagateResourceLimitsExcept=MEMLOCK in slurm.conf"
)


@dataclass(frozen=True, slots=True)
class Privileges:
    """What this process may lock.

    Attributes:
        uid: its effective user.
        limit_bytes: RLIMIT_MEMLOCK, the soft one; None is unlimited.
        hard_bytes: up to where it can raise that itself; None is unlimited.
        effective: CapEff.
        bounding: CapBnd, what it could have been given.
        is_in_user_namespace: there a capability does not count for locked memory.
    """

    uid: int
    limit_bytes: int | None
    hard_bytes: int | None
    effective: int
    bounding: int
    is_in_user_namespace: bool


def read_privileges(proc: Path = Path("/proc")) -> Privileges:
    """Those of this process.

    Args:
        proc: where the process file system is mounted.
    """
    limits = [
        None if limit == resource.RLIM_INFINITY else limit
        for limit in resource.getrlimit(resource.RLIMIT_MEMLOCK)
    ]
    lines = (proc / "self" / "status").read_text(encoding="utf-8", errors="replace").splitlines()
    status = dict(line.split(":", 1) for line in lines if ":" in line)
    try:
        ids = (proc / "self" / "uid_map").read_text(encoding="ascii").split()
    except FileNotFoundError:  # a kernel without user namespaces
        ids = _INITIAL_IDS
    return Privileges(
        uid=int(status["Uid"].split()[1]),
        limit_bytes=limits[0],
        hard_bytes=limits[1],
        effective=int(status["CapEff"], 16),
        bounding=int(status["CapBnd"], 16),
        is_in_user_namespace=ids != _INITIAL_IDS,
    )


def check_memlock(facts: Privileges, buffers_bytes: int, *, is_required: bool, has_rdma: bool) -> Check:
    """Whether a rank's buffers can be registered with the HCA.

    Args:
        facts: of this process.
        buffers_bytes: what one rank registers.
        is_required: RDMA was asked for.
        has_rdma: the node has a device that would need it.
    """
    limit = "unlimited" if facts.limit_bytes is None else format_size(facts.limit_bytes)
    if facts.limit_bytes is None or facts.limit_bytes >= buffers_bytes:
        return ok(_NAME, limit)
    if facts.effective & _IPC_LOCK and not facts.is_in_user_namespace:
        return ok(_NAME, f"{limit}, lifted by the capability IPC_LOCK")
    found = f"{limit}, the buffers of a rank need {format_size(buffers_bytes)}; {_why_not_lifted(facts)}"
    if not has_rdma and not is_required:
        return ok(_NAME, f"{limit}, enough without RDMA")
    return without_rdma(_NAME, found, _remedy(facts, buffers_bytes), is_required=is_required)


def _why_not_lifted(facts: Privileges) -> str:
    if facts.is_in_user_namespace:
        return "in a user namespace IPC_LOCK does not lift the limit"
    if facts.bounding & _IPC_LOCK:
        return (
            f"IPC_LOCK was granted, but it is not effective (CapEff {facts.effective:#x}) for uid {facts.uid}"
        )
    return "IPC_LOCK was not granted"


def _remedy(facts: Privileges, buffers_bytes: int) -> str:
    if facts.hard_bytes is None or facts.hard_bytes >= buffers_bytes:
        return "ulimit -l unlimited before the start: the hard limit allows it"
    if facts.is_in_user_namespace:
        return f"set the limit on the node before the container starts; {_RAISE}"
    if facts.bounding & _IPC_LOCK:
        return (
            f"run this container as root, since a user other than root gets no added capability; or {_RAISE}"
        )
    return f"add the capability IPC_LOCK to a container that runs as root; or {_RAISE}"
