"""What a securityContext comes to here: what containers are given, and what a stranger's manifest is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from azcp_kit.rehearse.fields import Fields

_GIVEN: Final = frozenset(
    [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "IPC_LOCK",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "NET_RAW",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
        "SYS_NICE",
    ]
)
"""Those that every container has by default, and two that reach nothing outside of it."""


@dataclass(frozen=True, slots=True)
class Security:
    """How a container is confined.

    Args:
        uid, gid: None for the image's own.
        is_non_root: an image that would run as root is refused.
        groups: of its processes beside the first.
        added, dropped: capabilities, without their prefix; ALL for all.
        is_read_only: its root file system.
        no_new_privileges: no set-uid program gives any.
        withheld: what it asks for and is not given, for the list of what cannot be shown.
    """

    uid: int | None
    gid: int | None
    is_non_root: bool
    groups: tuple[int, ...]
    added: tuple[str, ...]
    dropped: tuple[str, ...]
    is_read_only: bool
    no_new_privileges: bool
    withheld: tuple[str, ...]

    def refusal(self, image_user: str) -> str:
        """Why the kubelet would not start it; empty where it would.

        Args:
            image_user: USER of the image, as it is written there.
        """
        user = image_user.partition(":")[0]
        if not self.is_non_root or (self.uid is not None and self.uid != 0):
            return ""
        if self.uid == 0 or user in ("", "0", "root"):
            return "container has runAsNonRoot and image will run as root"
        if not user.isdecimal():
            return f"container has runAsNonRoot and image has non-numeric user ({user})"
        return ""

    def user(self, image_user: str) -> str:
        """USER as the engine takes it; empty for the image's own."""
        user = image_user if self.uid is None else str(self.uid)
        if self.gid is None:
            return "" if self.uid is None else user
        return f"{user.partition(':')[0] or '0'}:{self.gid}"


def read_security(pod: Fields, container: Fields) -> Security:
    """A container's confinement; what it does not say itself, its pod says.

    Args:
        pod: the securityContext of the pod.
        container: that of the container.
    """
    capabilities = container.at("capabilities")
    added = tuple(_bare(name) for name in capabilities.words("add"))
    is_privileged = container.flag("privileged")
    withheld = [f"capability {name}" for name in added if name not in _GIVEN]
    if is_privileged:
        withheld.insert(0, "privileged: true")
    groups = [*_numbers(pod, "supplementalGroups")]
    if pod.has("fsGroup"):
        groups.append(pod.number("fsGroup", 0))
    return Security(
        uid=_inherited(pod, container, "runAsUser"),
        gid=_inherited(pod, container, "runAsGroup"),
        is_non_root=(container if container.has("runAsNonRoot") else pod).flag("runAsNonRoot"),
        groups=tuple(dict.fromkeys(groups)),
        added=tuple(name for name in added if name in _GIVEN),
        dropped=tuple(_bare(name) for name in capabilities.words("drop")),
        is_read_only=container.flag("readOnlyRootFilesystem"),
        no_new_privileges=not container.flag("allowPrivilegeEscalation", default=True),
        withheld=tuple(withheld),
    )


def _inherited(pod: Fields, container: Fields, name: str) -> int | None:
    return (container if container.has(name) else pod).optional_number(name)


def _bare(name: str) -> str:
    return name.upper().removeprefix("CAP_")


def _numbers(fields: Fields, name: str) -> list[int]:
    value = fields.raw.get(name) or []
    if not isinstance(value, list) or not all(type(entry) is int and entry >= 0 for entry in value):
        raise fields.error(name, "is no list of numbers")
    return value
