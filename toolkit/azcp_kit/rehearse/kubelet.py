"""The kubelet's part: a pod's network, its containers, and what probes and logs say of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

from azcp_runtime.contract import PreflightError

from azcp_kit.engine import errors_told
from azcp_kit.rehearse.account import Emulator
from azcp_kit.rehearse.assembly import Image, assemble
from azcp_kit.rehearse.disks import Disks
from azcp_kit.rehearse.names import hosts_text
from azcp_kit.rehearse.plan import place_of
from azcp_kit.rehearse.pod import Container, Pod
from azcp_kit.rehearse.probe import Probe
from azcp_kit.rehearse.probing import connects, responds, succeeds
from azcp_kit.rehearse.runtime import Ended, Sandbox
from azcp_kit.rehearse.station import Options, Station
from azcp_kit.rehearse.store import Store

_HOSTS: Final = "/etc/hosts"
_READABLE: Final = 0o644


class Kubelet:
    """Runs pods' containers in a station; a `Runtime`."""

    def __init__(
        self,
        station: Station,
        store: Store,
        emulator: Emulator,
        account: str,
        images: Mapping[str, Image],
        folder: Path,
    ) -> None:
        self.disks = Disks(station, store, emulator, account, lambda name: self.ended(name) is None)
        self._station = station
        self._images = images
        self._folder = folder

    def open(self, pod: Pod, names: tuple[str, ...], resolved: Mapping[str, tuple[str, ...]]) -> Sandbox:
        """Give a pod its network and its volumes.

        Raises:
            PreflightError: the engine failed.
        """
        volumes, fresh = self.disks.make(pod)
        holder, address = self._station.holder(
            pod.identity.host, names, tuple(dict.fromkeys(volumes.values()))
        )
        hosts = self._folder / f"{holder}.hosts"
        hosts.write_text(hosts_text(pod, address, resolved), encoding="utf-8")
        hosts.chmod(_READABLE)
        # The node's own address is this machine's: nothing else is outside of the pods.
        sandbox = Sandbox(pod, holder, place_of(pod, address, self._station.gateway), volumes, hosts)
        self.disks.own(sandbox, fresh)
        return sandbox

    def start(self, sandbox: Sandbox, container: Container) -> str:
        """Start a container; its name in the engine.

        Raises:
            ContainerConfigError: the kubelet would not make it.
            PreflightError: it cannot be started.
        """
        launch = assemble(
            container, self._images[container.image], sandbox.place, self.disks.store, self.disks.emulator
        )
        self.disks.fill(sandbox, container)
        hosts = {"Type": "bind", "Source": str(sandbox.hosts), "Target": _HOSTS, "ReadOnly": True}
        name = self._station.container(
            sandbox.holder,
            launch.image,
            [*self.disks.mounts(sandbox, launch.mounts), hosts],
            _confinement(container),
            entrypoint=list(launch.entrypoint) or None,
            command=list(launch.command) or None,
            environment=dict(launch.environment),
            user=launch.user or None,
            working_dir=container.workdir or None,
        )
        self._station.start(name)
        self.disks.used(sandbox, name, launch.mounts)
        return name

    def ended(self, name: str) -> Ended | None:
        """How a container has ended; None while it runs."""
        with errors_told("the engine lost a container"):
            state = self._station.api.inspect_container(name)["State"]
        if state["Running"]:
            return None
        return Ended(int(state["ExitCode"]), "OOMKilled" if state.get("OOMKilled") else "")

    def signal(self, name: str, number: str) -> None:
        """Send a container a signal; nothing where it has ended."""
        if self.ended(name) is not None:
            return
        try:
            with errors_told("a container cannot be signalled"):
                self._station.api.kill(name, number)
        except PreflightError:
            # It may have ended in between.
            if self.ended(name) is None:
                raise

    def tail(self, name: str, lines: int) -> str:
        """The last that it said on each stream; of lines at one moment the engine loses the order."""
        with errors_told("the engine does not tell what a container said"):
            logs = self._station.api.logs
            output: bytes = logs(name, stdout=True, stderr=False, tail=lines)
            errors: bytes = logs(name, stdout=False, stderr=True, tail=lines)
        ends = b"" if not output or output.endswith(b"\n") else b"\n"
        return (output + ends + errors).decode(errors="replace")

    def said(self, name: str, lines: int) -> tuple[tuple[float, str], ...]:
        """The same line by line, each with its time in seconds since 1970."""
        with errors_told("the engine does not tell what a container said"):
            said: bytes = self._station.api.logs(name, tail=lines, timestamps=True)
        return tuple(_stamped(line) for line in said.decode(errors="replace").splitlines())

    def answers(self, sandbox: Sandbox, name: str, probe: Probe) -> bool:
        """Whether a container's probe succeeds right now."""
        if probe.unknown:
            return True
        if probe.argv:
            return succeeds(self._station.api, name, probe)
        ask = connects if probe.path is None else responds
        return ask(sandbox.place.address, probe)

    def resolve(self, sandbox: Sandbox, resolved: Mapping[str, tuple[str, ...]]) -> None:
        """Tell a pod under which names others are found now."""
        text = hosts_text(sandbox.pod, sandbox.place.address, resolved).encode()
        # In place: another file of that name would not be the one that its containers have mounted.
        with sandbox.hosts.open("r+b") as file:
            file.write(text)
            file.truncate()

    @contextmanager
    def archive(self, name: str, path: str) -> Iterator[Iterator[bytes]]:
        """What lies at a path of a container, as a tar stream.

        Raises:
            PreflightError: nothing is there, or the engine failed.
        """
        with errors_told(f"nothing can be read at {path}"):
            stream, _ = self._station.api.get_archive(name, path)
            yield stream


def _confinement(container: Container) -> Options:
    security = container.security
    return {
        "cap_add": list(security.added) or None,
        "cap_drop": list(security.dropped) or None,
        "read_only": security.is_read_only,
        "group_add": [str(group) for group in security.groups] or None,
        "security_opt": ["no-new-privileges"] if security.no_new_privileges else None,
    }


def _stamped(line: str) -> tuple[float, str]:
    """A line with the engine's own time before it: 2026-01-31T12:00:00.123456789Z TEXT."""
    stamp, _, text = line.partition(" ")
    try:
        # Python reads at most six digits of a second.
        when = datetime.fromisoformat(f"{stamp.removesuffix('Z')[:26]}+00:00")
    except ValueError:
        return 0.0, line
    return when.timestamp(), text
