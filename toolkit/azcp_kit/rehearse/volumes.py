"""A pod's volumes as values: what each holds, who shares it, and whether it can be had here at all."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from azcp_kit.rehearse.environment import (
    ContainerConfigError,
    Place,
    field_value,
    look_up,
    resource_value,
)
from azcp_kit.rehearse.expand import expand
from azcp_kit.rehearse.fields import Fields
from azcp_kit.rehearse.quantity import parse_quantity
from azcp_kit.rehearse.store import Store
from azcp_kit.shown import shown

_DEFAULT_MODE: Final = 0o644
_OF_THE_SYSTEM: Final = ("/dev", "/proc", "/sys", "/run", "/var/run", "/etc", "/lib", "/usr", "/boot")
"""On a node these hold devices, sockets and settings, which no empty folder could stand for."""
_FILE_KINDS: Final = frozenset({"File", "FileOrCreate", "Socket", "CharDevice", "BlockDevice"})


class Sort(Enum):
    """What a volume is here."""

    FILES = "files"
    FOLDER = "folder"
    MEMORY = "memory"
    ABSENT = "absent"


class Sharing(Enum):
    """Which pods see the same volume."""

    POD = "pod"
    NODE = "node"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Volume:
    """One volume of a pod.

    Args:
        name: its own.
        sort: what it is here.
        fields: its specification, from which its files come.
        sharing: which pods see the same.
        key: what tells it from others that are shared: the path on the node, or the claim's name.
        size_bytes: at most, for one in memory.
        is_group_owned: whether fsGroup changes its owner.
        mode: of a folder.
        notice: what cannot be shown of it; empty for nothing.
    """

    name: str
    sort: Sort
    fields: Fields
    sharing: Sharing = Sharing.POD
    key: str = ""
    size_bytes: int = 0
    is_group_owned: bool = True
    mode: int = 0o755
    notice: str = ""


@dataclass(frozen=True, slots=True)
class VolumeFile:
    """A file of a volume that Kubernetes fills."""

    path: str
    content: bytes = field(repr=False)
    mode: int = _DEFAULT_MODE


@dataclass(frozen=True, slots=True)
class Mount:
    """Where a container sees a volume.

    Args:
        volume: its name.
        path: in the container.
        is_read_only: whether the container cannot write there.
        sub_path: the part of the volume that is seen.
        expands: the part has $(NAME) in it.
    """

    volume: str
    path: str
    is_read_only: bool
    sub_path: str
    expands: bool

    def part(self, variables: Mapping[str, str]) -> str:
        """The part of the volume that is seen; empty for all of it.

        Raises:
            ContainerConfigError: it would lead out of the volume.
        """
        path = expand(self.sub_path, variables) if self.expands else self.sub_path
        if path.startswith("/") or ".." in path.split("/"):
            raise ContainerConfigError(f"subPath {shown(path)} must stay within the volume")
        return posixpath.normpath(path) if path else ""


def read_mounts(container: Fields) -> tuple[Mount, ...]:
    """Where a container sees which volumes.

    Raises:
        UsageError: a path is none.
    """
    found = []
    for mount in container.each("volumeMounts"):
        path = mount.text("mountPath")
        if not path.startswith("/") or ":" in path or "\0" in path or posixpath.normpath(path) == "/":
            raise mount.error("mountPath", f"is '{path}', where nothing can be mounted")
        sub_path = mount.text("subPathExpr") or mount.text("subPath")
        found.append(
            Mount(
                mount.text("name"),
                posixpath.normpath(path),
                mount.flag("readOnly"),
                sub_path,
                mount.has("subPathExpr"),
            )
        )
    return tuple(found)


def read_volumes(spec: Fields) -> dict[str, Volume]:
    """The volumes of a pod by name."""
    return {fields.text("name"): _volume(fields.text("name"), fields) for fields in spec.each("volumes")}


def _volume(name: str, fields: Fields) -> Volume:
    kind = next((key for key in fields.raw if key != "name"), "emptyDir")
    if kind in ("secret", "configMap", "downwardAPI", "projected"):
        return Volume(name, Sort.FILES, fields)
    if kind == "emptyDir":
        return _empty_dir(name, fields)
    if kind == "hostPath":
        return _host_path(name, fields)
    if kind == "ephemeral":
        return Volume(name, Sort.FOLDER, fields)
    if kind == "persistentVolumeClaim":
        claim = fields.at(kind).text("claimName")
        return Volume(
            name, Sort.FOLDER, fields, Sharing.ALL, claim, notice=f"claim {claim}: an empty folder here"
        )
    return Volume(name, Sort.FOLDER, fields, notice=f"volume {name} ({kind}): an empty folder here")


def _empty_dir(name: str, fields: Fields) -> Volume:
    below = fields.at("emptyDir")
    size = parse_quantity(below.raw.get("sizeLimit") or 0, below.path("sizeLimit"))
    in_memory = below.text("medium") == "Memory"
    return Volume(name, Sort.MEMORY if in_memory else Sort.FOLDER, fields, size_bytes=int(size), mode=0o777)


def _host_path(name: str, fields: Fields) -> Volume:
    below = fields.at("hostPath")
    path, kind = posixpath.normpath(below.text("path") or "/"), below.text("type")
    is_system = path == "/" or any(path == place or path.startswith(f"{place}/") for place in _OF_THE_SYSTEM)
    if is_system or kind in _FILE_KINDS:
        return Volume(name, Sort.ABSENT, fields, notice=f"hostPath {path} of the node: not mounted")
    state = "taken to exist there" if kind == "Directory" else "made where it is absent"
    return Volume(
        name,
        Sort.FOLDER,
        fields,
        Sharing.NODE,
        path,
        is_group_owned=False,
        notice=f"hostPath {path}: an empty folder of root's, mode 0755, per node ({state})",
    )


def volume_files(volume: Volume, container: Fields, place: Place, store: Store) -> tuple[VolumeFile, ...]:
    """What a volume of Sort.FILES holds.

    Args:
        volume: one of them.
        container: whose resources the downward API tells where it names none.
        place: of the pod.
        store: what it refers to.

    Raises:
        ContainerConfigError: it refers to what is not there.
    """
    fields = volume.fields
    if fields.has("projected"):
        below = fields.at("projected")
        mode = below.number("defaultMode", _DEFAULT_MODE)
        sources = below.each("sources")
        return tuple(file for source in sources for file in _source(source, mode, container, place, store))
    kind = next(kind for kind in ("secret", "configMap", "downwardAPI") if fields.has(kind))
    mode = fields.at(kind).number("defaultMode", _DEFAULT_MODE)
    return tuple(_source(fields, mode, container, place, store))


def _source(fields: Fields, mode: int, container: Fields, place: Place, store: Store) -> Iterator[VolumeFile]:
    if fields.has("downwardAPI"):
        for item in fields.at("downwardAPI").each("items"):
            reference = item.at("resourceFieldRef")
            text = (
                resource_value(reference, container, place)
                if reference.raw
                else field_value(item.at("fieldRef").text("fieldPath"), place)
            )
            yield VolumeFile(_inside(item.text("path")), text.encode(), item.number("mode", mode))
        return
    is_secret = fields.has("secret")
    if not is_secret and not fields.has("configMap"):
        return  # a service account's token, which nobody here could issue
    below = fields.at("secret" if is_secret else "configMap")
    name = below.text("secretName") or below.text("name")
    content = look_up(store, place, name, is_secret=is_secret)
    if content is None:
        if below.flag("optional"):
            return
        kind = "secret" if is_secret else "configmap"
        raise ContainerConfigError(f'MountVolume.SetUp failed: {kind} "{shown(name)}" not found')
    items = below.each("items") or tuple(Fields({"key": key, "path": key}, below.where) for key in content)
    for item in items:
        key = item.text("key")
        if key in content:
            yield VolumeFile(_inside(item.text("path")), content[key], item.number("mode", mode))
        elif not below.flag("optional"):
            raise ContainerConfigError(f"references non-existent key {shown(key)} of {shown(name)}")


def _inside(path: str) -> str:
    if not path or path.startswith("/") or ".." in path.split("/"):
        raise ContainerConfigError(f"the path {shown(path)} must stay within the volume")
    return posixpath.normpath(path)
