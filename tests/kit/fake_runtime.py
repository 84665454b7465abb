"""A runtime without containers: a test says what runs, what ends how, and which probes succeed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from azcp_kit.rehearse.environment import ContainerConfigError
from azcp_kit.rehearse.plan import place_of
from azcp_kit.rehearse.pod import Container, Pod
from azcp_kit.rehearse.probe import Probe
from azcp_kit.rehearse.runtime import Ended, Sandbox
from azcp_runtime.contract import PreflightError


@dataclass
class FakeRuntime:
    """Containers are named POD/CONTAINER/N, N counting from 1 over all starts of that name.

    Args:
        codes: with which containers end, by their names; what is absent runs on.
        unready: containers whose probes fail, by POD/CONTAINER.
        broken: containers that cannot be started, by POD/CONTAINER.
        unmade: containers that the kubelet would not make, the same way.
        logs: what containers say, by their names.
    """

    codes: dict[str, int] = field(default_factory=dict)
    unready: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    unmade: set[str] = field(default_factory=set)
    logs: dict[str, str] = field(default_factory=dict)
    opened: list[str] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    signals: list[tuple[str, str]] = field(default_factory=list)
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    resolved: dict[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)

    def open(self, pod: Pod, names: tuple[str, ...], resolved: Mapping[str, tuple[str, ...]]) -> Sandbox:
        """Give it an address of its own."""
        title = pod.identity.title
        self.opened.append(title)
        self.names[title], self.resolved[title] = names, resolved
        place = place_of(pod, f"172.20.0.{len(self.opened) + 1}", "172.20.0.1")
        return Sandbox(pod, title, place, {}, Path("/nowhere"))

    def start(self, sandbox: Sandbox, container: Container) -> str:
        """Start it, or fail as it was told to."""
        stem = f"{sandbox.pod.identity.title}/{container.name}"
        if stem in self.unmade:
            raise ContainerConfigError('secret "keys" not found')
        if stem in self.broken:
            raise PreflightError("the container cannot be started", cause="no such file")
        name = f"{stem}/{sum(other.rpartition('/')[0] == stem for other in self.started) + 1}"
        self.started.append(name)
        return name

    def ended(self, name: str) -> Ended | None:
        """As `codes` says."""
        return Ended(self.codes[name]) if name in self.codes else None

    def signal(self, name: str, number: str) -> None:
        """Remembered; SIGKILL ends it."""
        self.signals.append((name, number))
        if number == "SIGKILL":
            self.codes[name] = 137

    def tail(self, name: str, lines: int) -> str:  # noqa: ARG002 - a log is as short as it is
        """As `logs` says."""
        return self.logs.get(name, "")

    def answers(self, sandbox: Sandbox, name: str, probe: Probe) -> bool:  # noqa: ARG002 - by its name alone
        """Unless it is among the unready."""
        return name.rpartition("/")[0] not in self.unready

    def resolve(self, sandbox: Sandbox, resolved: Mapping[str, tuple[str, ...]]) -> None:
        """Remembered."""
        self.resolved[sandbox.pod.identity.title] = resolved
