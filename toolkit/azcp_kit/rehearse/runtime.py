"""What a pod's fate needs of whatever runs containers, so that it can be decided without any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from azcp_kit.rehearse.environment import Place
from azcp_kit.rehearse.pod import Container, Pod
from azcp_kit.rehearse.probe import Probe


@dataclass(frozen=True, slots=True)
class Ended:
    """How a container has ended.

    Args:
        code: its exit code.
        reason: what else is known of it, such as that it could not be started.
    """

    code: int
    reason: str = ""


@dataclass(slots=True)
class Sandbox:
    """A pod that has an address.

    Args:
        pod: whose it is.
        holder: the engine's container that keeps it.
        place: for the downward API.
        volumes: the engine's, by the pod's names.
        hosts: its hosts file on this machine.
        filled: the volumes whose files are in them.
    """

    pod: Pod
    holder: str
    place: Place
    volumes: Mapping[str, str]
    hosts: Path
    filled: set[str] = field(default_factory=set)


class Runtime(Protocol):
    """Runs the containers of pods."""

    def open(self, pod: Pod, names: tuple[str, ...], resolved: Mapping[str, tuple[str, ...]]) -> Sandbox:
        """Give a pod its network and its volumes.

        Args:
            pod: which one.
            names: those that others find it by from now on.
            resolved: what its hosts file says of others, names by address.

        Raises:
            PreflightError: it cannot be done.
        """

    def start(self, sandbox: Sandbox, container: Container) -> str:
        """Start a container; the engine's name of it.

        Raises:
            ContainerConfigError: the kubelet would not make it.
            PreflightError: it cannot be started.
        """

    def ended(self, name: str) -> Ended | None:
        """How it has ended; None while it runs."""

    def signal(self, name: str, number: str) -> None:
        """Send it a signal; nothing where it has ended."""

    def tail(self, name: str, lines: int) -> str:
        """The last that it said, on its output and then on its errors."""

    def answers(self, sandbox: Sandbox, name: str, probe: Probe) -> bool:
        """Whether its probe succeeds right now."""

    def resolve(self, sandbox: Sandbox, resolved: Mapping[str, tuple[str, ...]]) -> None:
        """Tell a pod under which names others are found now."""
