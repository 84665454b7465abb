"""Where the data goes: the node's disk, who may write it, and how many pods share it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from azcp_kit.lint.finding import Finding, Rule, Severity, named
from azcp_kit.lint.manifest import Manifest
from azcp_kit.lint.pods import Pod
from azcp_kit.lint.setup import Setup

MADE_ON_DEMAND: Final = Rule(
    "K501-host-path-made-on-demand",
    Severity.WARNING,
    why="where the NVMe disk is not mounted, the folder is made on the OS disk, which fills up; and it"
    " belongs to root with mode 0755, so that no other user can write",
    fix="use type: Directory, which fails at once where the disk is missing",
)
USER_WRITES_HOST_PATH: Final = Rule(
    "K502-user-writes-host-path",
    Severity.WARNING,
    why="fsGroup does not change a hostPath: what belongs to root stays unwritable for a user",
    fix="have root make a subfolder of that uid once (an initContainer, or the node's set-up), or run the"
    " writing container as root",
)
OPEN_TO_ALL: Final = Rule(
    "K503-folder-open-to-all",
    Severity.WARNING,
    why="every process of the node may replace the model that is about to be run",
    fix="make a subfolder that belongs to the uid that reads it, mode 0755",
)
SHARED_NODE: Final = Rule(
    "K504-pods-may-share-a-node",
    Severity.WARNING,
    why="two pods on one node write the same files, and same-node messages of several ranks need rights that"
    " pods lack",
    fix="add a required podAntiAffinity with topologyKey kubernetes.io/hostname",
)

_OPEN_MODE: Final = re.compile(r"0?[0-7]?777|(?:a|ugo|o)?\+[rxXst]*w[rwxXst]*|a=rwx")
_WHOLE_NODE_GPUS: Final = 4
_HOST: Final = "kubernetes.io/hostname"


def made_on_demand(pod: Pod, _manifest: Manifest) -> Iterator[Finding]:
    """A hostPath that comes into being by itself."""
    for volume in pod.volumes:
        path = volume.at("hostPath")
        name = named(path.at("path").text)
        if path.at("type").text == "DirectoryOrCreate":
            yield MADE_ON_DEMAND.at(path.at("type").line, f"hostPath {name} is made where it is missing")
        elif (
            path
            and not path.at("type").text
            and not path.at("path").text.startswith(("/dev", "/sys", "/proc"))
        ):
            yield MADE_ON_DEMAND.at(path.line, f"hostPath {name} has no type", severity=Severity.NOTE)


def user_writes_host_path(pod: Pod, _manifest: Manifest) -> Iterator[Finding]:
    """A container that is not root, with a folder of the node to write to."""
    has_root = any(pod.user_of(container) == 0 for container in pod.containers if container.is_init)
    for container in pod.containers:
        for mount in container.mounts:
            path = pod.host_path_of(mount.volume)
            is_folder = path and not path.startswith(("/dev", "/sys", "/proc"))
            if is_folder and pod.user_of(container) and not mount.is_read_only and not has_root:
                what = f"container {named(container.name)} does not run as root and writes {named(path)}"
                yield USER_WRITES_HOST_PATH.at(mount.line, what)


def open_to_all(setup: Setup) -> Iterator[Finding]:
    """The mode 777 and its like."""
    for command in setup.script.commands:
        place = command.index_of("chmod")
        modes = () if place is None else command.words[place + 1 :]
        for word in modes:
            if _OPEN_MODE.fullmatch(word.text):
                yield OPEN_TO_ALL.at(word.line, f"chmod {word.text}")
                break


def shared_node(pod: Pod, _manifest: Manifest) -> Iterator[Finding]:
    """Several pods with the same folder of a node, and nothing that keeps them apart."""
    writes = [
        v for v in pod.volumes if v.at("hostPath") and not v.at("hostPath", "path").text.startswith("/dev")
    ]
    if writes and pod.is_peer and (pod.replicas or 1) > 1 and not _is_spread(pod):
        yield SHARED_NODE.at(writes[0].line, f"{pod.replicas} pods with one hostPath may land on one node")


def _is_spread(pod: Pod) -> bool:
    anti = pod.spec.at("affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution").items
    spread = pod.spec.at("topologySpreadConstraints").items
    annotations = (
        pod.owner.at("metadata", "annotations"),
        pod.part.at("template", "metadata", "annotations"),
    )
    exclusive = (a.at("alpha.jobset.sigs.k8s.io/exclusive-topology").text for a in annotations)
    ports = (port for container in pod.containers for port in container.node.at("ports").items)
    return (
        any(term.at("topologyKey").text == _HOST for term in anti)
        or any(
            term.at("topologyKey").text == _HOST and term.at("whenUnsatisfiable").text != "ScheduleAnyway"
            for term in spread
        )
        or _HOST in exclusive
        or any(port.at("hostPort") or (pod.has_host_network and port.at("containerPort")) for port in ports)
        # As many as a machine of today has: the pod is alone on its node.
        or sum(container.gpus for container in pod.containers) >= _WHOLE_NODE_GPUS
    )


POD_RULES: Final = (made_on_demand, user_writes_host_path, shared_node)
SETUP_RULES: Final = (open_to_all,)
