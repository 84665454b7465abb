"""From a manifest's text to all that a rehearsal of it needs to know; nothing is started."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from azcp_runtime.contract import UsageError

from azcp_kit.rehearse.account import Distribution, Source, find_distribution, find_sources
from azcp_kit.rehearse.agreement import expect_agreement
from azcp_kit.rehearse.documents import Document, read_documents
from azcp_kit.rehearse.environment import ContainerConfigError, Place, resolve_environment
from azcp_kit.rehearse.jobset import read_jobset
from azcp_kit.rehearse.made_up import make_up
from azcp_kit.rehearse.model import Made, Workload
from azcp_kit.rehearse.mpijob import LAUNCHER_NODE, read_mpijob
from azcp_kit.rehearse.own_kinds import (
    read_daemon_set,
    read_deployment,
    read_job,
    read_pod,
    read_stateful_set,
)
from azcp_kit.rehearse.pod import Container, Pod, read_pod_plan
from azcp_kit.rehearse.scale import node_count, pod_count, scale
from azcp_kit.rehearse.store import Store, read_store
from azcp_kit.rehearse.unshown import list_unshown
from azcp_kit.rehearse.volcano import read_volcano_job
from azcp_kit.shown import shown

DEFAULT_NODES: Final = 3
MOST_NODES: Final = 64
MOST_PODS: Final = 128
_READERS: Final[Mapping[tuple[str, str], Callable[[Document, int], Workload]]] = {
    ("Pod", ""): read_pod,
    ("Job", "batch"): read_job,
    ("StatefulSet", "apps"): read_stateful_set,
    ("Deployment", "apps"): read_deployment,
    ("DaemonSet", "apps"): read_daemon_set,
    ("MPIJob", "kubeflow.org"): read_mpijob,
    ("JobSet", "jobset.x-k8s.io"): read_jobset,
    ("Job", "batch.volcano.sh"): read_volcano_job,
}
_KNOWN: Final = frozenset({"Service", "Secret", "ConfigMap", "ServiceAccount", "Namespace"})
_MPIJOB: Final = "kubeflow.org/v2beta1"


@dataclass(frozen=True, slots=True)
class Task:
    """What one container of a pod distributes."""

    pod: Pod
    container: Container
    distribution: Distribution


@dataclass(frozen=True, slots=True)
class Plan:
    """A manifest, understood.

    Args:
        workloads: what makes pods.
        pods: of each workload's title, each group's name, in order.
        store: what pods refer to.
        made_up: Secrets that the manifest lacks.
        nodes: how many are rehearsed.
        manifest_nodes: how many the manifest has.
        sources: the places in accounts that are read from.
        tasks: the containers that distribute.
        unshown: what this machine cannot show.
        skipped: documents that are not rehearsed.
    """

    workloads: tuple[Workload, ...]
    pods: Mapping[tuple[str, str], tuple[Pod, ...]]
    store: Store = field(repr=False)
    made_up: tuple[Made, ...]
    nodes: int
    manifest_nodes: int
    sources: tuple[Source, ...]
    tasks: tuple[Task, ...]
    unshown: tuple[str, ...]
    skipped: tuple[str, ...]

    @property
    def all_pods(self) -> tuple[Pod, ...]:
        """Those of all workloads."""
        return tuple(pod for pods in self.pods.values() for pod in pods)


def make_plan(text: str, nodes: int | None) -> Plan:
    """What the manifest comes to.

    Args:
        text: of the manifest.
        nodes: how many to rehearse; the manifest's own number if None, at most DEFAULT_NODES.

    Raises:
        UsageError: it is no manifest, or has nothing that could be rehearsed.
        PreflightError: its own numbers contradict each other.
    """
    documents = read_documents(text)
    expect_agreement(documents)
    own = max((node_count(document) for document in documents), default=0)
    chosen = nodes or min(own or DEFAULT_NODES, DEFAULT_NODES)
    if not 1 <= chosen <= MOST_NODES:
        raise UsageError(f"{chosen} nodes are not rehearsed on one machine", remedy=f"1 to {MOST_NODES} are")
    documents = tuple(scale(document, chosen) for document in documents)
    crowded = [document.title for document in documents if pod_count(document) > MOST_PODS]
    if crowded:
        raise UsageError(shown(f"more than {MOST_PODS} pods on one machine: {', '.join(crowded)}"))
    workloads = tuple(_workload(document, chosen) for document in documents if _reader(document))
    if not workloads:
        raise UsageError(
            f"the manifest makes no pods that can be rehearsed: it has {_kinds(documents)}",
            remedy="Pod, Job, StatefulSet, Deployment, DaemonSet, MPIJob, JobSet and Volcano's Job can be",
        )
    return _plan(documents, workloads, own)


def _plan(documents: tuple[Document, ...], workloads: tuple[Workload, ...], own: int) -> Plan:
    pods = {
        (workload.title, group.name): tuple(read_pod_plan(plan) for plan in group.pods)
        for workload in workloads
        for group in workload.groups
    }
    every = tuple(pod for group in pods.values() for pod in group)
    store = read_store(documents, workloads)
    made_up = make_up(every, store)
    store = store.with_secrets(made_up)
    texts = {(id(pod), c.name): _texts(pod, c, store) for pod in every for c in pod.containers}
    tasks = (
        Task(pod, container, found)
        for pod in every
        for container in pod.containers
        if (found := find_distribution(texts[id(pod), container.name][0]))
    )
    nodes = len({pod.identity.node for pod in every} - {LAUNCHER_NODE})
    skipped = [d.title for d in documents if not _reader(d) and d.kind not in _KNOWN]
    return Plan(
        workloads,
        pods,
        store,
        made_up,
        nodes,
        own if own > 1 else nodes,
        find_sources(text for words, values in texts.values() for text in (*words, *values)),
        tuple(tasks),
        list_unshown(documents, every, store.services),
        tuple(shown(title) for title in skipped),
    )


def _reader(document: Document) -> Callable[[Document, int], Workload] | None:
    return _READERS.get((document.kind, document.group))


def _workload(document: Document, nodes: int) -> Workload:
    version = document.fields.text("apiVersion")
    if document.kind == "MPIJob" and version != _MPIJOB:
        raise UsageError(shown(f"{document.title} is of {version}"), remedy=f"write {_MPIJOB}")
    reader = _READERS[document.kind, document.group]
    workload = reader(document, nodes)
    return replace(workload, title=shown(workload.title))


def _kinds(documents: Iterable[Document]) -> str:
    return shown(", ".join(dict.fromkeys(document.kind for document in documents)))


def _texts(pod: Pod, container: Container, store: Store) -> tuple[list[str], list[str]]:
    """The words and the values of a container, as far as they are known before its pod has an address."""
    try:
        variables = resolve_environment(container.fields, place_of(pod, "127.0.0.1", "127.0.0.1"), store)
    except ContainerConfigError:
        return [], []  # told when the pod runs into it
    command, args = container.argv(variables)
    return [*command, *args], list(variables.values())


def place_of(pod: Pod, address: str, host_address: str) -> Place:
    """Where a pod runs: this machine has the resources of its node."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Place(pod.identity, address, host_address, pod.service_account, os.cpu_count() or 1, memory)
