"""A container as the rules see it: what it runs, its variables, its mounts, its resources."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from azcp_kit.lint.located import Located
from azcp_kit.lint.settings import MPIRUN, Setting, Way, settings_of
from azcp_kit.lint.shell import Script, parse_argv, parse_script
from azcp_kit.lint.shell_words import Word

KIT: Final = ("azcp-launch", "azcp-distribute", "azcp-mpirun")
"""The kit's own programs, which take care of ssh, hosts and MPI themselves."""

PEER_PROGRAMS: Final = (*KIT, *MPIRUN, "azcp-cluster", "azcp-sshd", "sshd", "torchrun")
FABRIC: Final = re.compile(r"(?:rdma/|.*/(?:ib|roce|hca)).*")
GPU: Final = re.compile(r"(?:nvidia|amd)\.com/gpu.*")

_SHELL: Final = re.compile(r"(?:.*/)?(?:bash|sh|dash|zsh)")
_ANY_EXPANSION: Final = re.compile(r"\$\(|\{\{|\$\{")


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume at a path of the container."""

    volume: str
    path: str
    line: int
    is_read_only: bool


@dataclass(frozen=True, slots=True)
class Container:
    """One container of a pod template, from the pod's own `containers` or its `initContainers`."""

    name: str
    node: Located
    is_init: bool
    script: Script
    settings: tuple[Setting, ...]
    """The container's env first, then what its commands set."""
    mounts: tuple[Mount, ...]

    @property
    def line(self) -> int:
        """Where it begins."""
        return self.node.line

    @property
    def has_own_command(self) -> bool:
        """Whether the image's own command is replaced."""
        return bool(self.node.at("command") or self.node.at("args"))

    def runs(self, *programs: str) -> bool:
        """Whether a command of it runs one of the programs."""
        return any(command.runs(*programs) for command in self.script.commands)

    def resources(self, *which: str) -> dict[str, Located]:
        """Requests and limits in one mapping, or only those asked for; limits win."""
        found: dict[str, Located] = {}
        for kind in which or ("requests", "limits"):
            found.update(self.node.at("resources", kind).fields)
        return found

    @property
    def has_fabric_resource(self) -> bool:
        """Whether a device plugin gives it the fabric."""
        return any(FABRIC.fullmatch(name) for name in self.resources())

    @property
    def gpus(self) -> int:
        """How many GPUs it asks for."""
        return sum(value.number or 0 for name, value in self.resources().items() if GPU.fullmatch(name))

    @property
    def added_capabilities(self) -> dict[str, int]:
        """Each added capability, without CAP_, and its line."""
        added = self.node.at("securityContext", "capabilities", "add").items
        return {item.text.upper().removeprefix("CAP_"): item.line for item in added}

    @property
    def dropped_capabilities(self) -> dict[str, int]:
        """Each dropped capability and its line."""
        dropped = self.node.at("securityContext", "capabilities", "drop").items
        return {item.text.upper().removeprefix("CAP_"): item.line for item in dropped}

    @property
    def is_privileged(self) -> bool:
        """Whether it may do everything."""
        return self.node.at("securityContext", "privileged").is_true


def read_container(
    node: Located, config_files: Mapping[str, Mapping[str, Located]], *, is_init: bool
) -> Container:
    """Read a container.

    Args:
        node: the container in the manifest, or Argo's `script`.
        config_files: by volume, the texts of a ConfigMap of the same file.
        is_init: it stands under initContainers.
    """
    mounts = tuple(
        Mount(item.at("name").text, item.at("mountPath").text.rstrip("/") or "/", item.line,
              item.at("readOnly").is_true)
        for item in node.at("volumeMounts").items
    )  # fmt: skip
    script = _script(node, mounts, config_files)
    env = tuple(
        Setting(item.at("name").text, _env_value(item), item.at("value").line, Way.ENV)
        for item in node.at("env").items
    )
    settings = (*env, *settings_of(script))
    # Argo calls the one container of a template so.
    return Container(node.at("name").text or "main", node, is_init, script, settings, mounts)


def _env_value(item: Located) -> str | None:
    value = item.at("value")
    return value.text if value and not _ANY_EXPANSION.search(value.text) else None


def _script(
    node: Located, mounts: tuple[Mount, ...], config_files: Mapping[str, Mapping[str, Located]]
) -> Script:
    source = node.at("source")
    if source:
        shell = node.at("command").items[:1]
        runs_shell = not shell or _SHELL.fullmatch(shell[0].text)
        return _located_script(source) if runs_shell else Script()
    argv = (*node.at("command").items, *node.at("args").items)
    if not argv:
        return Script()
    is_shell = _SHELL.fullmatch(argv[0].text) is not None
    if not is_shell:
        words = (Word(item.text, item.line, _ANY_EXPANSION.search(item.text) is not None) for item in argv)
        return parse_argv(tuple(words))
    for place, item in enumerate(argv[1:], 1):
        if re.fullmatch(r"-[a-z]*c", item.text):
            return _located_script(argv[place + 1]) if place + 1 < len(argv) else Script()
        if not item.text.startswith("-"):
            return _mounted_script(item.text, mounts, config_files)
    return Script()


def _located_script(node: Located) -> Script:
    return parse_script(node.text, node.block_line or node.line, one_line=not node.block_line)


def _mounted_script(
    path: str, mounts: tuple[Mount, ...], config_files: Mapping[str, Mapping[str, Located]]
) -> Script:
    """The script of a ConfigMap that the container has mounted at `path`."""
    for mount in mounts:
        folder, _, name = path.rpartition("/")
        text = config_files.get(mount.volume, {}).get(name)
        if folder == mount.path and text:
            return _located_script(text)
    return Script()
