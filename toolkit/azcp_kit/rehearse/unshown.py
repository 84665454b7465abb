"""What of a manifest cannot be shown on containers of one machine: listed, and never made to look as if."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from azcp_kit.rehearse.documents import Document
from azcp_kit.rehearse.fabric import REQUIRE_RDMA, WHY_WITHOUT, requires_rdma
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
_LONGEST: Final = 1000
_OF_THE_NODE: Final = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "setHostnameAsFQDN")


@dataclass(frozen=True, slots=True)
class Unshown:
    """One thing that cannot be shown.

    Args:
        kind: what it has in common with others, which share a line.
        subject: what it is called there; empty for a kind that is all there is to say.
    """

    kind: str
    subject: str = ""


def list_unshown(
    documents: Iterable[Document], pods: Iterable[Pod], services: Iterable[Service]
) -> tuple[str, ...]:
    """One line for each kind of thing, with all that are of it, and how many pods have any."""
    pods, services = tuple(pods), tuple(services)
    subjects: dict[str, dict[str, None]] = {}
    owners: dict[str, int] = {}
    for found in (found for document in documents for found in _of_document(document)):
        subjects.setdefault(found.kind, {})[found.subject] = None
    for pod in pods:
        own = (*_of_pod(pod), *_of_names(pod, services))
        for found in own:
            subjects.setdefault(found.kind, {})[found.subject] = None
        for kind in {found.kind for found in own}:
            owners[kind] = owners.get(kind, 0) + 1
    return tuple(
        _line(kind, list(found), owners.get(kind, len(pods)), len(pods)) for kind, found in subjects.items()
    )


def _line(kind: str, subjects: list[str], owners: int, pods: int) -> str:
    named = ", ".join(subject for subject in subjects if subject)
    some = f" ({owners} of {pods} pods)" if owners < pods else ""
    return shown(f"{named}: {kind}{some}" if named else f"{kind}{some}", _LONGEST)


def _of_document(document: Document) -> Iterator[Unshown]:
    if _QUEUE in document.fields.at("metadata").strings("labels"):
        yield Unshown("whether and when the job is admitted", "Kueue")


def _of_pod(pod: Pod) -> Iterator[Unshown]:
    fields = pod.fields
    for name in _PLACEMENT:
        if fields.raw.get(name):
            yield Unshown("each pod has a node of its own here", name)
    for name in _OF_THE_NODE:
        if fields.raw.get(name):
            yield Unshown("the pod keeps its own", name)
    if fields.at("securityContext").raw.get("sysctls"):
        yield Unshown("the engine's own here", "sysctls")
    if pod.identity.labels.get(_IDENTITY) == "true":
        yield Unshown("the emulator's key lets the pod in instead", "workload identity")
    if fields.flag("automountServiceAccountToken", default=True):
        yield Unshown("there is no API server", "the service account's token")
    yield from (_of_volume(volume.notice) for volume in pod.volumes.values() if volume.notice)
    for container in pod.containers:
        yield from _of_container(container)


def _of_volume(notice: str) -> Unshown:
    subject, sign, kind = notice.partition(": ")
    return Unshown(kind, subject) if sign else Unshown(notice)


def _of_container(container: Container) -> Iterator[Unshown]:
    for resource in sorted(_resources(container.fields)):
        if resource in ("cpu", "memory", "ephemeral-storage"):
            yield Unshown("requests and limits are not enforced", resource)
        else:
            yield Unshown("there is none here", resource)
    if requires_rdma(container.command) or requires_rdma(container.args):
        yield Unshown(WHY_WITHOUT, REQUIRE_RDMA)
    for withheld in container.security.withheld:
        yield Unshown("not given to a container on this machine", withheld)
    if "IPC_LOCK" in container.security.added:
        yield Unshown("how much memory may be locked is the engine's setting here", "IPC_LOCK")
    if container.fields.has("livenessProbe"):
        yield Unshown("nothing is killed for it here", "livenessProbe")
    if container.fields.has("lifecycle"):
        yield Unshown("not run", "lifecycle hooks")
    probe = container.readiness
    if probe is not None and probe.unknown:
        yield Unshown("taken to succeed", f"readinessProbe of the kind {probe.unknown}")


def _resources(fields: Fields) -> set[str]:
    below = fields.at("resources")
    return {key for kind in ("requests", "limits") for key in below.at(kind).raw}


def _of_names(pod: Pod, services: tuple[Service, ...]) -> Iterator[Unshown]:
    name, identity = pod.identity.subdomain, pod.identity
    if name and not any(s.name == name and s.namespace == identity.namespace for s in services):
        yield Unshown("names below it do not resolve here", f"no Service {name} in the manifest")
