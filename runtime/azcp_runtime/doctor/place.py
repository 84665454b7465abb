"""Where a destination lies: on which disk, in which file system, and whether that is the system's own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azcp_runtime.doctor.check import Check, few, ok, warn
from azcp_runtime.source.names import shown

_NAME: Final = "destination disk"
_OF_THE_SYSTEM: Final = ("/", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf")
"""A container's root is a layer on the node's own disk, and these files come from it by bind mounts: a
hostPath on which no disk is mounted has their device."""

_IN_MEMORY: Final = ("tmpfs", "ramfs")
_SHARED: Final = ("nfs", "nfs4", "cifs", "smb3", "lustre", "ceph", "beegfs", "gpfs", "9p", "virtiofs", "afs")
_WRONG_DISK: Final = (
    "mount the local NVMe disk there, or name a folder on it: the data would fill the system's disk"
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a folder is.

    Attributes:
        device: the number of its device.
        kind: the file system, such as ext4, xfs, overlay or tmpfs.
        source: what is mounted there, such as /dev/nvme0n1.
        twins: files of the operating system that lie on the same device.
    """

    device: int
    kind: str
    source: str
    twins: tuple[str, ...]


def read_place(
    folder: Path, mountinfo: str | None = None, of_the_system: Sequence[str] = _OF_THE_SYSTEM
) -> Place:
    """Where an existing folder is.

    Args:
        folder: absolute.
        mountinfo: what /proc/self/mountinfo says; read from there when None.
        of_the_system: files that lie on the system's disk.

    Raises:
        OSError: the folder is not there.
    """
    if mountinfo is None:
        mountinfo = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    device = os.stat(folder).st_dev
    kind, source = mounted_at(os.path.realpath(folder), mountinfo)
    twins = tuple(path for path in of_the_system if _device(path) == device)
    return Place(device, kind, source, twins)


def mounted_at(path: str, mountinfo: str) -> tuple[str, str]:
    """File system and source of the mount that holds a path; empty where no line says so."""
    best, found = -1, ("", "")
    for line in mountinfo.splitlines():
        before, separator, after = line.partition(" - ")
        words, rest = before.split(" "), after.split(" ")
        if not separator or len(words) < 5 or len(rest) < 2:  # noqa: PLR2004 - the fields that proc(5) promises
            continue
        point = _unescaped(words[4])
        # Of mounts on one point the last one is on top.
        if len(point) >= best and (path == point or path.startswith(point.rstrip("/") + "/")):
            best, found = len(point), (rest[0], _unescaped(rest[1]))
    return shown(os.fsencode(found[0])), shown(os.fsencode(found[1]))


def check_place(facts: Place) -> Check:
    """Whether it is a disk of the node's own, made for data."""
    found = f"{facts.kind or 'unknown file system'} on {facts.source or 'an unknown device'}"
    if facts.kind in _SHARED or facts.kind.startswith("fuse."):
        return warn(
            _NAME,
            f"{found} looks shared",
            "each node needs a disk of its own; a shared one is written N times",
        )
    if facts.kind in _IN_MEMORY:
        return ok(_NAME, f"{found}: files take memory")
    if facts.twins:
        # The files beside it tell something only where / itself lies elsewhere.
        twins = "/" if "/" in facts.twins else few(list(facts.twins))
        return warn(_NAME, f"{found}, the disk of the operating system: {twins} too", _WRONG_DISK)
    return ok(_NAME, found)


def _device(path: str) -> int | None:
    try:
        return os.stat(path).st_dev
    except OSError:  # not every image has it
        return None


def _unescaped(field: str) -> str:
    """A field of mountinfo, where blanks and backslashes are written as octal numbers."""
    raw = field.encode("utf-8", "surrogateescape")
    for character in (b" ", b"\t", b"\n", b"#", b"\\"):
        raw = raw.replace(b"\\%03o" % character[0], character)
    return os.fsdecode(raw)
