"""Fewer nodes than the manifest has, or more: every count in it that means its nodes, changed alike."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from azcp_kit.rehearse.documents import Document
from azcp_kit.rehearse.fields import Fields

_RANGE: Final = re.compile(r"\[(\d+)-(\d+)\]")
_OPTION: Final = re.compile(r"(--(?:nodes|expect-ranks|nnodes|num-nodes|num_nodes))(=|\s+)(\d+)(?![\d:.])")
_OPTIONS: Final = frozenset({"--nodes", "--expect-ranks", "--nnodes", "--num-nodes", "--num_nodes", "-np"})
_MPIRUN: Final = ("mpirun", "mpiexec", "azcp-mpirun")
_VARIABLES: Final = frozenset({"NNODES", "AZCP_NODES", "NUM_NODES", "WORLD_SIZE", "SLURM_NNODES"})
_HOSTS: Final = "--hosts"


@dataclass(frozen=True, slots=True)
class Counts:
    """What a document's numbers become.

    Args:
        before, after: of its nodes.
        total_before: of its pods, where those are more, such as a master's beside the workers'.
    """

    before: int
    after: int
    total_before: int

    def changed(self, number: int) -> int:
        """What a number becomes that may mean the nodes, or ranks of which each node has as many."""
        if number == self.total_before:
            return self.total_before - self.before + self.after
        if number and number % self.before == 0:
            return number // self.before * self.after
        return number


def node_count(document: Document) -> int:
    """How many nodes the document's pods are spread over; 0 where it does not say so itself."""
    spec = document.fields.at("spec")
    match document.kind:
        case "MPIJob":
            workers = spec.at("mpiReplicaSpecs", "Worker").number("replicas", 0)
            return workers + (1 if spec.flag("runLauncherAsWorker") else 0)
        case "Job" if document.group == "batch.volcano.sh":
            return max((task.number("replicas", 0) for task in spec.each("tasks")), default=0)
        case "Job":
            return _job_count(spec)
        case "JobSet":
            return max((_replicated(job) for job in spec.each("replicatedJobs")), default=0)
        case "StatefulSet" | "Deployment":
            return spec.number("replicas", 1)
    return 0


def scale(document: Document, nodes: int) -> Document:
    """The document for so many nodes; one that does not say how many it has stays as it is."""
    before = node_count(document)
    is_plain_job = document.kind == "Job" and before == 1
    if before in (0, nodes) or is_plain_job:
        return document
    raw: dict[str, Any] = copy.deepcopy(dict(document.fields.raw))
    counts = Counts(before, nodes, pod_count(document))
    _COUNTERS[document.kind, document.group == "batch.volcano.sh"](raw["spec"], counts)
    for container in containers_in(raw):
        _change_container(container, counts)
    return replace(document, fields=Fields(raw, document.fields.where))


def changed_text(text: str, counts: Counts) -> str:
    """A command's text with its ranges of hosts and its options changed."""

    def ranged(match: re.Match[str]) -> str:
        first, last = int(match[1]), int(match[2])
        if last - first + 1 != counts.before:
            return match[0]
        width = len(match[2]) if len(match[1]) > 1 and match[1].startswith("0") else 1
        return f"[{match[1]}-{first + counts.after - 1:0{width}d}]"

    def optioned(match: re.Match[str]) -> str:
        return f"{match[1]}{match[2]}{counts.changed(int(match[3]))}"

    return _OPTION.sub(optioned, _RANGE.sub(ranged, text))


def changed_words(words: list[str], counts: Counts) -> list[str]:
    """An argument list changed."""
    found: list[str] = []
    has_mpirun = False
    for index, word in enumerate(words):
        option = words[index - 1] if index else ""
        has_mpirun = has_mpirun or word.rpartition("/")[2] in _MPIRUN
        is_count = option in _OPTIONS or (option == "-n" and has_mpirun)
        if is_count and word.isdecimal():
            found.append(str(counts.changed(int(word))))
        elif option == _HOSTS:
            found.append(_fewer_hosts(changed_text(word, counts), counts))
        elif word.startswith(f"{_HOSTS}="):
            hosts = _fewer_hosts(changed_text(word.partition("=")[2], counts), counts)
            found.append(f"{_HOSTS}={hosts}")
        else:
            found.append(changed_text(word, counts))
    return found


def _fewer_hosts(text: str, counts: Counts) -> str:
    names = text.split(",")
    is_list = "[" not in text and len(names) == counts.before > counts.after
    return ",".join(names[: counts.after]) if is_list else text


def _job_count(spec: Fields) -> int:
    return spec.number("completions", spec.number("parallelism", 1))


def _replicated(job: Fields) -> int:
    return _job_count(job.at("template", "spec")) * job.number("replicas", 1)


def pod_count(document: Document) -> int:
    """How many pods the document makes beside a launcher; 0 where it does not say so itself."""
    spec = document.fields.at("spec")
    if document.kind == "JobSet":
        return sum(_replicated(job) for job in spec.each("replicatedJobs"))
    if document.group == "batch.volcano.sh":
        return sum(task.number("replicas", 0) for task in spec.each("tasks"))
    return node_count(document)


def _count_mpijob(spec: dict[str, Any], counts: Counts) -> None:
    worker = spec["mpiReplicaSpecs"]["Worker"]
    worker["replicas"] += counts.after - counts.before


def _count_job(spec: dict[str, Any], counts: Counts) -> None:
    # A parallelism below the completions is how many run at a time, and stays so.
    if "completions" in spec:
        spec["completions"] = counts.after
    if spec.get("parallelism", 1) == counts.before or spec.get("parallelism", 1) > counts.after:
        spec["parallelism"] = counts.after


def _count_replicas(spec: dict[str, Any], counts: Counts) -> None:
    spec["replicas"] = counts.after


def _count_jobset(spec: dict[str, Any], counts: Counts) -> None:
    for job in spec["replicatedJobs"]:
        if _replicated(Fields(job, "")) != counts.before:
            continue
        if job.get("replicas", 1) == counts.before:
            job["replicas"] = counts.after
        else:
            _count_job(job["template"]["spec"], counts)


def _count_volcano(spec: dict[str, Any], counts: Counts) -> None:
    less = 0
    for task in spec["tasks"]:
        if task.get("replicas", 0) == counts.before:
            task["replicas"] = counts.after
            less += counts.before - counts.after
            if "minAvailable" in task:
                task["minAvailable"] = min(task["minAvailable"], counts.after)
    if "minAvailable" in spec:
        spec["minAvailable"] = max(1, spec["minAvailable"] - less)


_COUNTERS: Final[Mapping[tuple[str, bool], Callable[[dict[str, Any], Counts], None]]] = {
    ("MPIJob", False): _count_mpijob,
    ("Job", False): _count_job,
    ("Job", True): _count_volcano,
    ("JobSet", False): _count_jobset,
    ("StatefulSet", False): _count_replicas,
    ("Deployment", False): _count_replicas,
}


def containers_in(value: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - any part of a document
    """All containers below, wherever the kind has its templates."""
    if isinstance(value, dict):
        for key, below in value.items():
            if key in ("containers", "initContainers") and isinstance(below, list):
                yield from (entry for entry in below if isinstance(entry, dict))
            else:
                yield from containers_in(below)
    elif isinstance(value, list):
        for entry in value:
            yield from containers_in(entry)


def _change_container(container: dict[str, Any], counts: Counts) -> None:
    for key in ("command", "args"):
        words = container.get(key)
        if isinstance(words, list) and all(isinstance(word, str) for word in words):
            container[key] = changed_words(words, counts)
    for entry in container.get("env") or []:
        value = entry.get("value") if isinstance(entry, dict) else None
        if isinstance(value, str) and entry.get("name") in _VARIABLES and value.isdecimal():
            entry["value"] = str(counts.changed(int(value)))
        elif isinstance(value, str):
            entry["value"] = changed_text(value, counts)
