"""All that a rehearsal has in the engine: one network, volumes, containers; none of it outlives the block."""

from __future__ import annotations

import logging
import secrets
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from azcp_runtime.contract import PreflightError

from azcp_kit.engine import Engine, errors_told
from azcp_kit.rehearse.holder import PATH as HOLDER
from azcp_kit.rehearse.holder import holder_image
from azcp_kit.rehearse.orphans import own_labels, remove_orphans

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LOG: Final = {"type": "json-file", "config": {"max-size": "16m", "max-file": "1"}}
_PROCESSES: Final = 4096
_RESOLVER: Final = ("timeout:1", "attempts:1")
"""The engine does not answer at all for a name that is not there, where a cluster says so at once."""

Mounts = list[dict[str, Any]]
Options = dict[str, Any]

log = logging.getLogger(__name__)


class Station:
    """The engine's side of one rehearsal.

    Everything is named before it is asked for: a signal between the engine's making it and its answer
    leaves nothing behind.
    """

    def __init__(self, engine: Engine, prefix: str) -> None:
        self.engine = engine
        self.prefix = prefix
        self.gateway = ""
        self._made: list[tuple[Callable[[str], None], str]] = []
        self._count = 0

    @property
    def api(self) -> Any:  # noqa: ANN401 - docker-py's client, which is untyped in parts
        """The engine's API."""
        return self.engine.client.api

    @property
    def labels(self) -> dict[str, str]:
        """Of everything here: who has to remove it."""
        return own_labels()

    def name(self, kind: str) -> str:
        """A name that nothing has yet."""
        self._count += 1
        return f"{self.prefix}-{kind}{self._count}"

    def open(self) -> None:
        """Make the network, from which nothing leads out of this machine, and the holder's image.

        Raises:
            PreflightError: the engine refuses.
        """
        with errors_told("no network can be made for the rehearsal"):
            self._made.append((self._remove_network, self.prefix))
            self.api.create_network(self.prefix, driver="bridge", internal=True, labels=self.labels)
            found = self.api.inspect_network(self.prefix)["IPAM"]["Config"]
        addresses = [entry.get("Gateway", "") for entry in found]
        self.gateway = next((a.partition("/")[0] for a in addresses if "." in a), "")
        if not self.gateway:
            raise PreflightError("the engine's network has no address of this machine")
        with errors_told("the holder's image cannot be made"):
            program = holder_image(str(self.engine.client.version()["Arch"]))
            self._made.append((self._remove_image, self.prefix))
            changes = [f"LABEL {name}={value}" for name, value in self.labels.items()]
            self.api.import_image_from_data(program, repository=self.prefix, tag="latest", changes=changes)

    def volume(self, tmpfs_bytes: int | None = None) -> str:
        """Make a volume; one in memory where a size is given, 0 for as much as there is."""
        name = self.name("v")
        options = {}
        if tmpfs_bytes is not None:
            limit = f",size={tmpfs_bytes}" if tmpfs_bytes else ""
            options = {"type": "tmpfs", "device": "tmpfs", "o": f"mode=0777{limit}"}
        self._made.append((self._remove_volume, name))
        with errors_told("no volume can be made"):
            self.api.create_volume(name, driver="local", driver_opts=options, labels=self.labels)
        return name

    def holder(self, host: str, aliases: tuple[str, ...], volumes: tuple[str, ...]) -> tuple[str, str]:
        """Start what holds a pod's network and volumes, the latter at /v/NAME; its name and address."""
        name = self.name("pod")
        mounts = [_volume_mount(volume, f"/v/{volume}") for volume in volumes]
        networking = self.api.create_networking_config(
            {self.prefix: self.api.create_endpoint_config(aliases=list(aliases))}
        )
        options = {
            "network_mode": self.prefix,
            "ipc_mode": "shareable",
            "cap_drop": ["ALL"],
            "dns_opt": list(_RESOLVER),
        }
        self._create(
            name, self.prefix, mounts, options, command=[HOLDER], hostname=host, networking_config=networking
        )
        self.start(name)
        with errors_told("the engine lost a pod"):
            networks = self.api.inspect_container(name)["NetworkSettings"]["Networks"]
        return name, str(networks[self.prefix]["IPAddress"])

    def container(
        self,
        holder: str,
        image: str,
        mounts: Mounts,
        options: Options,
        **config: Any,  # noqa: ANN401 - passed on to docker-py
    ) -> str:
        """Make a container in a pod; it is not started yet.

        Args:
            holder: of the pod.
            image: its id.
            mounts: as the engine takes them.
            options: of its host side, such as cap_add.
            config: everything else, such as command.
        """
        name = self.name("c")
        joined = {"network_mode": f"container:{holder}", "ipc_mode": f"container:{holder}"}
        self._create(name, image, mounts, {**options, **joined}, **config)
        return name

    def start(self, name: str) -> None:
        """Start a container.

        Raises:
            PreflightError: it cannot be started, and why.
        """
        with errors_told("the container cannot be started"):
            self.api.start(name)

    def close(self) -> None:
        """Remove everything; what cannot be removed is said and not raised."""
        for remove, name in reversed(self._made):
            try:
                with errors_told(f"{name} may be left behind"):
                    remove(name)
            except PreflightError as error:
                log.warning("%s", error)
        self._made.clear()

    def _create(
        self,
        name: str,
        image: str,
        mounts: Mounts,
        options: Options,
        **config: Any,  # noqa: ANN401 - passed on to docker-py
    ) -> None:
        self._made.append((self.engine.remove, name))
        with errors_told("the container cannot be made"):
            self.api.create_container(
                image,
                name=name,
                labels=self.labels,
                healthcheck={"test": ["NONE"]},
                host_config=self.api.create_host_config(
                    mounts=mounts, log_config=_LOG, pids_limit=_PROCESSES, **options
                ),
                **config,
            )

    def _remove_network(self, name: str) -> None:
        self.api.remove_network(name)

    def _remove_image(self, name: str) -> None:
        self.api.remove_image(f"{name}:latest", force=True)

    def _remove_volume(self, name: str) -> None:
        self.api.remove_volume(name, force=True)


def _volume_mount(volume: str, path: str) -> dict[str, Any]:
    return {"Type": "volume", "Source": volume, "Target": path, "VolumeOptions": {"NoCopy": True}}


@contextmanager
def station(engine: Engine) -> Iterator[Station]:
    """A rehearsal's place in the engine, for the length of a with block.

    Raises:
        PreflightError: the engine refuses.
    """
    remove_orphans(engine)
    opened = Station(engine, f"azcp-rehearse-{secrets.token_hex(4)}")
    try:
        opened.open()
        yield opened
    finally:
        with _undisturbed():
            opened.close()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """No second signal ends the removal half-way."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
