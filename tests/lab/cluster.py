"""Nodes of a job as containers on a bridge network: each with an azcp-sshd, or all with an azcp-launch."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from docker import DockerClient
from docker.models.containers import Container

from tests.lab.containers import Ended, created, labels, run
from tests.lab.waiting import wait_until

READY_S: Final = 30.0
DATA: Final = "/mnt/data"
STATE: Final = "/run/azcp"
KEYS: Final = "/etc/azcp/ssh"
SERVICE: Final = "svc"
"""What follows a node's name where somebody asks for more than its first label."""

AZCP_SSHD: Final = ("/opt/azcp/bin/azcp-sshd",)


@dataclass(frozen=True)
class Setting:
    """How the containers of a job run.

    Args:
        image: an injected image.
        keys: the job's, as a Secret mounts them.
        user: uid, or uid:gid.
        is_locked: no capability, and a read-only root with two writable folders.
        environment: beside the image's own.
    """

    image: str
    keys: Path
    user: str
    is_locked: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, Any]:
        """For docker-py."""
        return {
            "user": self.user,
            "environment": dict(self.environment),
            "tmpfs": {STATE: "mode=1777"},
            "volumes": {str(self.keys): {"bind": KEYS, "mode": "ro"}},
            **({"cap_drop": ["ALL"], "read_only": True} if self.is_locked else {}),
        }


@dataclass(frozen=True)
class Cluster:
    """Nodes that have been started."""

    client: DockerClient
    setting: Setting
    network: str
    gateway: str
    nodes: Mapping[str, Container]
    folder: Path

    def data(self, node: str) -> Path:
        """What is DATA in that node."""
        return self.folder / node

    def launch(self, *words: str, timeout_s: float = 120, **environment: str) -> Ended:
        """azcp-launch in a container of its own, to its end."""
        return run(
            self.client, self.setting.image, azcp_launch(words), timeout_s, **self.launcher(environment)
        )

    def launcher(self, environment: Mapping[str, str]) -> dict[str, Any]:
        """The launcher's options; it has no disk."""
        options = {**self.setting.options, "network": self.network, "entrypoint": []}
        return options | {"environment": {**self.setting.environment, **environment}}


def azcp_launch(words: Sequence[str]) -> list[str]:
    """Its argument list."""
    return ["/opt/azcp/bin/azcp-launch", *words]


@contextmanager
def cluster(client: DockerClient, setting: Setting, names: Sequence[str], folder: Path) -> Iterator[Cluster]:
    """The nodes, up and listening, for the length of a with block."""
    with _nodes(client, setting, names, folder, AZCP_SSHD) as made:
        for name, node in made.nodes.items():
            wait_until(partial(_listens, node), READY_S, f"{name} listens")
        yield made


@contextmanager
def alike(
    client: DockerClient, setting: Setting, names: Sequence[str], folder: Path, words: Sequence[str]
) -> Iterator[Cluster]:
    """Nodes that all run azcp-launch with the same words, as the first process of each container."""
    with _nodes(client, setting, names, folder, azcp_launch(words)) as made:
        yield made


@contextmanager
def _nodes(
    client: DockerClient, setting: Setting, names: Sequence[str], folder: Path, argv: Sequence[str]
) -> Iterator[Cluster]:
    network_name = f"lab-{secrets.token_hex(4)}"
    network = client.networks.create(network_name, labels=labels())
    try:
        with ExitStack() as stack:
            nodes = {
                name: stack.enter_context(_node(client, setting, network_name, name, folder, argv))
                for name in names
            }
            for node in nodes.values():
                node.start()
            network.reload()
            gateway = network.attrs["IPAM"]["Config"][0]["Gateway"]
            yield Cluster(client, setting, network_name, gateway, nodes, folder)
    finally:
        network.remove()


def _listens(node: Container) -> bool:
    return b"istening on " in node.logs()  # as our server says it, and as OpenSSH does


@contextmanager
def _node(
    client: DockerClient, setting: Setting, network: str, name: str, folder: Path, argv: Sequence[str]
) -> Iterator[Container]:
    data = folder / name
    data.mkdir(exist_ok=True)  # a disk outlives the pods that write to it
    data.chmod(0o777)
    options = setting.options
    options["volumes"] = {**options["volumes"], str(data): {"bind": DATA, "mode": "rw"}}
    with created(
        client, setting.image, argv, entrypoint=[], name=f"{network}-{name}", hostname=name, **options
    ) as container:
        default = client.networks.get("bridge")
        default.disconnect(container)
        client.networks.get(network).connect(container, aliases=[name, f"{name}.{SERVICE}"])
        yield container
