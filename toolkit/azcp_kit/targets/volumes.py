"""Volumes of a pod, and where a container sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from azcp_kit.manifest.write import Comment
from azcp_kit.quantity import quantity
from azcp_kit.spec.job import JobSpec, StorageKind

STATE_MOUNT: Final = "/run/azcp"
STATE: Final = f"{STATE_MOUNT}/state"
"""Below the volume: the folder must be its user's own, and the volume itself is root's."""

KEYS: Final = "/etc/azcp/ssh"
"""Where the runtime looks for the job's key pair first."""

_STATE_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume and its place.

    Args:
        name: in the pod.
        source: what it is, as a pod has it.
        mount: where it is mounted.
        read_only: whether the container only reads it.
    """

    name: str
    source: dict[Any, Any]
    mount: str
    read_only: bool = False

    def as_volume(self) -> dict[Any, Any]:
        """An entry of a pod's volumes."""
        return {"name": self.name, **self.source}

    def as_mount(self) -> dict[str, Any]:
        """An entry of a container's volumeMounts."""
        read_only = {"readOnly": True} if self.read_only else {}
        return {"name": self.name, "mountPath": self.mount, **read_only}


def data_volume(job: JobSpec) -> Volume:
    """What the data lies on."""
    return Volume("data", _data_source(job), job.storage.path)


def shm_volume(job: JobSpec) -> Volume:
    """A /dev/shm of a size: containers have 64 MiB, and MPI and NCCL end with a bus error beyond them."""
    source: dict[Any, Any] = {
        Comment("Counts in the memory limit of the container that fills it."): None,
        "emptyDir": {"medium": "Memory", "sizeLimit": quantity(job.resources.shm_bytes)},
    }
    return Volume("shm", source, "/dev/shm")  # noqa: S108 - of the pod


def state_volume() -> Volume:
    """The one folder that our commands must be able to write: the root may be read-only."""
    source = {"emptyDir": {"medium": "Memory", "sizeLimit": quantity(_STATE_BYTES)}}
    return Volume("azcp-state", source, STATE_MOUNT)


def keys_volume(secret: str) -> Volume:
    """The job's ssh key pair; azcp-sshd copies it, so that its mode and owner do not matter."""
    return Volume("ssh-keys", {"secret": {"secretName": secret}}, KEYS, read_only=True)


def _data_source(job: JobSpec) -> dict[Any, Any]:
    storage = job.storage
    if storage.kind is StorageKind.HOST_PATH:
        return {
            Comment(
                "Directory, not DirectoryOrCreate: a disk that is not mounted must not fill the node's own."
            ): None,
            "hostPath": {"path": storage.path, "type": "Directory"},
        }
    if storage.kind is StorageKind.EMPTY_DIR:
        return {"emptyDir": {"sizeLimit": quantity(storage.size_bytes)} if storage.size_bytes else {}}
    claim = {
        "accessModes": ["ReadWriteOnce"],
        **({"storageClassName": storage.storage_class} if storage.storage_class else {}),
        "resources": {"requests": {"storage": quantity(storage.size_bytes)}},
    }
    return {"ephemeral": {"volumeClaimTemplate": {"spec": claim}}}
