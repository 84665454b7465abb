"""What azcp-launch is told of its nodes and its folder, against what the object makes of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from azcp_runtime.contract.image import LONGEST_HOST_NAME

from azcp_kit.lint.containers import Container
from azcp_kit.lint.finding import Finding, Rule, Severity, named
from azcp_kit.lint.host_ranges import MOST_HOSTS, hosts_in
from azcp_kit.lint.launch_line import LaunchLine, launch_lines
from azcp_kit.lint.manifest import Manifest
from azcp_kit.lint.pods import Pod
from azcp_kit.lint.rules.network_names import FILLED_IN_LATER

NODES_DIFFER: Final = Rule(
    "K116-nodes-differ",
    Severity.ERROR,
    why="azcp-launch waits for exactly that many nodes: for more it waits in vain, and fewer is refused",
    fix="give --nodes the number of pods",
)
HOSTS_DIFFER: Final = Rule(
    "K117-hosts-differ",
    Severity.ERROR,
    why="azcp-launch waits for hosts that never come, or leaves pods out",
    fix="give --hosts the names that the pods get",
)
NO_VOLUME: Final = Rule(
    "K505-destination-on-no-volume",
    Severity.ERROR,
    why="the data would fill the container's own layer: the node's OS disk, gone with the container, and"
    " seen by no other",
    fix="mount the volume for the data there, or give a DEST under one of the mounts",
)

_NUMBERED: Final = frozenset({"Job", "StatefulSet", "JobSet", "VolcanoJob"})
_MOST_CALLS: Final = 4
"""Calls of azcp-launch in one pod that are compared; each may name thousands of hosts."""
_ADDRESS: Final = re.compile(r"[\d.]+|[0-9a-fA-F:]*:[0-9a-fA-F:.]*")
_HOST_LABEL: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")


def nodes(pod: Pod, manifest: Manifest) -> Iterator[Finding]:
    """--nodes against the number of pods that take part."""
    pods = _number_of_pods(pod, manifest)
    for call in _calls(pod):
        option = call.options.get("--nodes")
        if pods is None or option is None or option.is_dynamic or not option.text.isdecimal():
            continue
        if option.text.lstrip("0") != str(pods):
            what = f"--nodes {named(option.text)}, but the {pod.kind} has {pods} nodes"
            yield NODES_DIFFER.at(option.line, what, fix=f"give --nodes {pods}")


def hosts(pod: Pod, manifest: Manifest) -> Iterator[Finding]:
    """--hosts against the names that the owner gives its pods, and their Service."""
    pods = _number_of_pods(pod, manifest)
    is_plain = pod.kind in _NUMBERED and not pod.has_host_network
    if pods is None or pods > MOST_HOSTS or not is_plain or not _is_good_name(pod):
        return
    service = _service(pod)
    right = _names(pod, pods)
    for call in _calls(pod):
        option = call.options.get("--hosts")
        given = hosts_in(option.text) if option and not option.is_dynamic else None
        if option is None or given is None or FILLED_IN_LATER.search(option.text):
            continue
        if _ADDRESS.fullmatch(given[0]):
            continue
        problem = _problem(given, right, service, pod)
        if problem:
            fix = f"give --hosts {named(_ranges(right, service or 'SERVICE'))}"
            yield HOSTS_DIFFER.at(option.line, problem, fix=fix)


def _problem(given: tuple[str, ...], right: tuple[str, ...], service: str, pod: Pod) -> str:
    labels = tuple(host.partition(".")[0] for host in given)
    known = frozenset(right)
    stranger = next((label for label in labels if label not in known), "")
    domains = {host.partition(".")[2].partition(".")[0] for host in given}
    if len(given) != len(right):
        return f"--hosts names {len(given)} hosts, but the {pod.kind} has {len(right)} pods"
    if stranger:
        return f"--hosts names {named(stranger)}, but the pods are {named(right[0])} and so on"
    if len(set(labels)) != len(labels):
        return "--hosts names a host twice"
    if not service:
        field = "serviceName" if pod.kind == "StatefulSet" else "subdomain"
        return f"--hosts needs names of pods, but the {pod.kind} has no {field}"
    wrong = next((domain for domain in sorted(domains) if domain != service), None)
    if wrong is None:
        return ""
    return (
        f"--hosts has {named(wrong) if wrong else 'no Service'} where the pods' Service is {named(service)}"
    )


def destination(pod: Pod, manifest: Manifest) -> Iterator[Finding]:
    """DEST against the volumes of the container that fills it."""
    worker = manifest.worker_of(pod)
    for container in pod.containers:
        filling = (container,) if worker is pod else tuple(c for c in worker.containers if not c.is_init)
        for call in launch_lines(container.script):
            dest = call.places[1] if len(call.places) > 1 else None
            if dest is None or dest.is_dynamic or not dest.text.startswith("/"):
                continue
            is_open = FILLED_IN_LATER.search(dest.text) or pod.spec.at("podSpecPatch")
            if is_open or "--dry-run" in call.options or any(_holds(c, dest.text) for c in filling):
                continue
            where = worker.title if worker is not pod else f"container {named(container.name)}"
            yield NO_VOLUME.at(dest.line, f"DEST {named(dest.text)} lies on no volume mount of {where}")


def _holds(container: Container, path: str) -> bool:
    # /dev/shm is a volume of every container, if a small one.
    mounts = ("/dev/shm", *(mount.path for mount in container.mounts))  # noqa: S108 - a mount, no file
    return any(
        FILLED_IN_LATER.search(mount) or f"{path.rstrip('/')}/".startswith(f"{mount.rstrip('/')}/")
        for mount in mounts
    )


def _calls(pod: Pod) -> Iterator[LaunchLine]:
    calls = (call for container in pod.containers for call in launch_lines(container.script))
    yield from islice(calls, _MOST_CALLS)


def _number_of_pods(pod: Pod, manifest: Manifest) -> int | None:
    """How many pods run the same; None where the file does not say, or several groups may take part."""
    spec = pod.owner.at("spec")
    if pod.kind == "MPIJob":
        count = manifest.worker_of(pod).part.at("replicas")
        extra = 1 if spec.at("runLauncherAsWorker").is_true else 0
        return (count.number + extra) if count.number is not None else None if count else 1 + extra
    if pod.kind not in _NUMBERED or len(manifest.pods_beside(pod)) > 1:
        return None
    if pod.kind == "Job":
        fields = [spec.at("completions") or spec.at("parallelism")]
    elif pod.kind == "JobSet":
        job = pod.part.at("template", "spec")
        fields = [pod.part.at("replicas"), job.at("completions") or job.at("parallelism")]
    else:
        fields = [pod.part.at("replicas") if pod.kind == "VolcanoJob" else spec.at("replicas")]
    total = 1
    for field in fields:
        if field and field.number is None:
            return None
        total *= field.number or 1
    return total


def _is_good_name(pod: Pod) -> bool:
    """Whether the names of the pods are known; of one that is no host name another rule speaks."""
    name = pod.owner.at("metadata", "name").text
    return _HOST_LABEL.fullmatch(name) is not None and len(name) <= LONGEST_HOST_NAME


def _names(pod: Pod, pods: int) -> tuple[str, ...]:
    number = max(pods, 1)
    if pod.kind == "JobSet":
        jobs = max(pod.part.at("replicas").number or 1, 1)
        each = max(number // jobs, 1)
        return tuple(f"{pod.name}-{pod.role}-{n // each}-{n % each}" for n in range(number))
    stem = f"{pod.name}-{pod.role}" if pod.kind == "VolcanoJob" else pod.name
    first = pod.owner.at("spec", "ordinals", "start").number or 0 if pod.kind == "StatefulSet" else 0
    return tuple(f"{stem}-{n}" for n in range(first, first + number))


def _ranges(names: tuple[str, ...], service: str) -> str:
    """The names as --hosts takes them, one range for each stem."""
    numbers: dict[str, list[str]] = {}
    for name in names:
        stem, _, number = name.rpartition("-")
        numbers.setdefault(stem, []).append(number)
    return ",".join(f"{stem}-[{each[0]}-{each[-1]}].{service}" for stem, each in numbers.items())


def _service(pod: Pod) -> str:
    """The Service that the pods' own names stand under, "" if they have none."""
    own = pod.spec.at("subdomain").text
    if pod.kind == "StatefulSet":
        return pod.owner.at("spec", "serviceName").text
    if pod.kind == "JobSet":
        return pod.owner.at("spec", "network", "subdomain").text or own or pod.name
    return own or (pod.name if pod.kind == "VolcanoJob" else "")


POD_RULES: Final = (nodes, hosts, destination)
