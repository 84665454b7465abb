"""The volumes of a rehearsal's pods in the engine: made, filled, and mounted whole or in part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from azcp_runtime.contract import PreflightError

from azcp_kit.engine import TIMEOUT_S, errors_told
from azcp_kit.inspect.container_files import ContainerFiles
from azcp_kit.inspect.files import Kind
from azcp_kit.rehearse.account import Emulator
from azcp_kit.rehearse.archive import STAMP, files_tar, folder_tar
from azcp_kit.rehearse.assembly import Seen
from azcp_kit.rehearse.pod import Container, Pod
from azcp_kit.rehearse.runtime import Sandbox
from azcp_kit.rehearse.station import Station
from azcp_kit.rehearse.store import Store
from azcp_kit.rehearse.volumes import Sharing, Sort, Volume, VolumeFile, volume_files

_PARTS_SINCE: Final = (1, 45)
"""The engine's API that can mount a part of a volume without following a link out of it."""
_PART_MODE: Final = 0o750
Mount = dict[str, Any]


@dataclass(slots=True)
class _Use:
    """A part of an engine's volume in a container; empty for all of it."""

    container: str
    part: str


@dataclass(slots=True)
class Disks:
    """The volumes.

    Args:
        station: where they are.
        store: what Secrets and the like hold.
        emulator: whose signature replaces one in a file.
        account: for which it signs.
        is_running: whether a container of that name runs.
    """

    station: Station
    store: Store = field(repr=False)
    emulator: Emulator
    account: str
    is_running: Callable[[str], bool]
    _shared: dict[tuple[str, ...], str] = field(default_factory=dict)
    _uses: dict[str, list[_Use]] = field(default_factory=dict)

    def make(self, pod: Pod) -> tuple[dict[str, str], tuple[str, ...]]:
        """The engine's volumes for a pod by its own names, and which of those were made for it just now."""
        found: dict[str, str] = {}
        fresh = []
        for volume in pod.volumes.values():
            if volume.sort is Sort.ABSENT:
                continue
            key = _key(pod, volume)
            if key is None or key not in self._shared:
                fresh.append(volume.name)
                found[volume.name] = self.station.volume(
                    volume.size_bytes if volume.sort is Sort.MEMORY else None
                )
                if key is not None:
                    self._shared[key] = found[volume.name]
            else:
                found[volume.name] = self._shared[key]
        return found, tuple(fresh)

    def own(self, sandbox: Sandbox, fresh: tuple[str, ...]) -> None:
        """Give folders that were just made the owner and the mode that they have in the cluster."""
        for name in fresh:
            volume = sandbox.pod.volumes[name]
            if volume.sort is not Sort.FILES:
                group = sandbox.pod.fs_group if volume.is_group_owned else None
                self.put(sandbox, folder_tar(sandbox.volumes[name], volume.mode, group))

    def fill(self, sandbox: Sandbox, container: Container) -> None:
        """Put the files in that Kubernetes puts into the volumes of a container.

        Raises:
            ContainerConfigError: one refers to what is not there.
        """
        for mount in container.mounts:
            volume = sandbox.pod.volumes[mount.volume]
            if volume.sort is not Sort.FILES or volume.name in sandbox.filled:
                continue
            files = volume_files(volume, container.fields, sandbox.place, self.store)
            swapped = [
                VolumeFile(file.path, self.emulator.file(file.content, self.account), file.mode)
                for file in files
            ]
            self.put(sandbox, files_tar(sandbox.volumes[volume.name], swapped, sandbox.pod.fs_group))
            sandbox.filled.add(volume.name)

    def mounts(self, sandbox: Sandbox, seen: tuple[Seen, ...]) -> list[Mount]:
        """What the engine mounts into a container."""
        found = [self._mount(sandbox, one) for one in seen]
        return [mount for mount in found if mount is not None]

    def used(self, sandbox: Sandbox, name: str, seen: tuple[Seen, ...]) -> None:
        """Remember what a container that was started can write to."""
        for one in seen:
            if one.volume in sandbox.volumes and not one.is_read_only:
                self._uses.setdefault(sandbox.volumes[one.volume], []).append(_Use(name, one.part))

    def put(self, sandbox: Sandbox, content: bytes) -> None:
        """Unpack a tar whose first folder is the engine's name of one of the pod's volumes."""
        with errors_told("a volume cannot be filled"):
            self.station.api.put_archive(sandbox.holder, "/v", content)

    def _mount(self, sandbox: Sandbox, seen: Seen) -> Mount | None:
        volume = sandbox.pod.volumes[seen.volume]
        if volume.sort is Sort.ABSENT:
            return None
        name = sandbox.volumes[seen.volume]
        # The kubelet mounts what it fills itself so that nobody else can change it.
        is_read_only = seen.is_read_only or volume.sort is Sort.FILES
        mount: Mount = {"Target": seen.path, "ReadOnly": is_read_only}
        if not seen.part:
            return mount | {"Type": "volume", "Source": name, "VolumeOptions": {"NoCopy": True}}
        if volume.sort is Sort.FILES:
            return mount | {"Type": "bind", "Source": self._place(name, f"{STAMP}/{seen.part}")}
        self._make_part(sandbox, name, seen.part)
        if _version(self.station) >= _PARTS_SINCE:
            options = {"NoCopy": True, "Subpath": seen.part}
            return mount | {"Type": "volume", "Source": name, "VolumeOptions": options}
        self._expect_quiet(name, seen.part)
        return mount | {"Type": "bind", "Source": self._place(name, seen.part)}

    def _place(self, volume: str, part: str) -> str:
        """Where the engine itself has a part of a volume."""
        with errors_told("the engine lost a volume"):
            return f"{self.station.api.inspect_volume(volume)['Mountpoint']}/{part}"

    def _make_part(self, sandbox: Sandbox, volume: str, part: str) -> None:
        """Make the folders down to a part that is not there yet, and make sure that no link is among them."""
        api = self.station.api
        address = f"{api.base_url}/v{api.api_version}/containers/{sandbox.holder}/archive"
        files = ContainerFiles(api, address, TIMEOUT_S)
        path = volume
        for name in part.split("/"):
            path = f"{path}/{name}"
            entry = files.entry(f"/v/{path}")
            if entry is None:
                self.put(sandbox, folder_tar(path, _PART_MODE, sandbox.pod.fs_group))
            elif entry.kind not in (Kind.FOLDER, Kind.FILE):
                raise PreflightError(f"the subPath {part} leads through what is no folder")

    def _expect_quiet(self, volume: str, part: str) -> None:
        """Refuse what is no longer certain once it was looked at: an engine of this age follows links."""
        for use in self._uses.get(volume, []):
            is_above = not use.part or part.startswith(f"{use.part}/")
            if is_above and self.is_running(use.container):
                raise PreflightError(
                    "this engine cannot mount a subPath of a volume that another container writes to",
                    remedy="Docker 25.0.3 and later can",
                )


def _key(pod: Pod, volume: Volume) -> tuple[str, ...] | None:
    """What tells a volume that several pods share; None for a pod's own."""
    if volume.sharing is Sharing.NODE:
        return ("node", pod.identity.node, volume.key)
    if volume.sharing is Sharing.ALL:
        return ("claim", pod.identity.namespace, volume.key)
    return None


def _version(station: Station) -> tuple[int, ...]:
    return tuple(int(part) for part in str(station.api.api_version).split("."))
