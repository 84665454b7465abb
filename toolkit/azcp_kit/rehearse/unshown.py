"""What of a manifest cannot be shown on containers of one machine: listed, and never made to look as if."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from azcp_kit.rehearse.documents import Document
from azcp_kit.rehearse.fields import Fields
from azcp_kit.rehearse.model import Service
from azcp_kit.rehearse.pod import Container, Pod
from azcp_kit.shown import shown

_QUEUE: Final = "kueue.x-k8s.io/queue-name"
_IDENTITY: Final = "azure.workload.identity/use"
_PLACEMENT: Final = (
    "nodeSelector",
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "schedulerName",
    "priorityClassName",
    "runtimeClassName",
    "schedulingGates",
    "resourceClaims",
)
_OF_THE_NODE: Final = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "setHostnameAsFQDN")


def list_unshown(
    documents: Iterable[Document], pods: Iterable[Pod], services: Iterable[Service]
) -> tuple[str, ...]:
    """One line for each thing, the same thing of several pods once."""
    pods, services = tuple(pods), tuple(services)
    lines = dict.fromkeys(line for document in documents for line in _of_document(document))
    for pod in pods:
        lines.update(dict.fromkeys(_of_pod(pod)))
        lines.update(dict.fromkeys(_of_names(pod, services)))
    return tuple(shown(line) for line in lines)


def _of_document(document: Document) -> Iterator[str]:
    if _QUEUE in document.fields.at("metadata").strings("labels"):
        yield "Kueue: whether and when the job is admitted"


def _of_pod(pod: Pod) -> Iterator[str]:
    fields = pod.fields
    yield from (f"{name}: each pod has a node of its own here" for name in _PLACEMENT if fields.raw.get(name))
    yield from (f"{name}: the pod keeps its own" for name in _OF_THE_NODE if fields.raw.get(name))
    if fields.at("securityContext").raw.get("sysctls"):
        yield "sysctls"
    if pod.identity.labels.get(_IDENTITY) == "true":
        yield "workload identity: the emulator's key lets the pod in instead"
    if fields.flag("automountServiceAccountToken", default=True):
        yield "the service account's token: there is no API server"
    yield from (volume.notice for volume in pod.volumes.values() if volume.notice)
    for container in pod.containers:
        yield from _of_container(container)


def _of_container(container: Container) -> Iterator[str]:
    for resource, _ in sorted(_resources(container.fields)):
        if resource in ("cpu", "memory", "ephemeral-storage"):
            yield f"{resource} requests and limits: not enforced"
        else:
            yield f"{resource}: there is none here"
    for withheld in container.security.withheld:
        yield f"{withheld}: not given to a container on this machine"
    if "IPC_LOCK" in container.security.added:
        yield "IPC_LOCK: how much memory may be locked is the engine's setting here"
    if container.fields.has("livenessProbe"):
        yield "livenessProbe: nothing is killed for it here"
    if container.fields.has("lifecycle"):
        yield "lifecycle hooks: not run"
    probe = container.readiness
    if probe is not None and probe.unknown:
        yield f"readinessProbe of the kind {probe.unknown}: taken to succeed"


def _resources(fields: Fields) -> set[tuple[str, str]]:
    below = fields.at("resources")
    return {(key, str(value)) for kind in ("requests", "limits") for key, value in below.at(kind).raw.items()}


def _of_names(pod: Pod, services: tuple[Service, ...]) -> Iterator[str]:
    name, identity = pod.identity.subdomain, pod.identity
    if name and not any(s.name == name and s.namespace == identity.namespace for s in services):
        yield f"no Service {name} in the manifest: names below it do not resolve here"
