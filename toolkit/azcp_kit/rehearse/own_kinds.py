"""Kubernetes' own kinds as workloads: Pod, Job, StatefulSet, Deployment and DaemonSet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from azcp_kit.rehearse.documents import Document
from azcp_kit.rehearse.fields import Fields
from azcp_kit.rehearse.identity import check_name, make_identity, suffix
from azcp_kit.rehearse.model import Group, PodPlan, Wish, Workload

DEFAULT_BACKOFF_LIMIT: Final = 6
INDEX_KEY: Final = "batch.kubernetes.io/job-completion-index"
_INDEX_PATH: Final = f"metadata.annotations['{INDEX_KEY}']"
_PER_INDEX_LIMIT: Final = 2**31 - 1


def read_pod(document: Document, _nodes: int) -> Workload:
    """A bare pod; one that would be restarted for ever is to come up."""
    name = check_name(document.name, document.fields.where)
    identity = make_identity(name, name, document.fields, document.namespace)
    spec = document.fields.at("spec")
    stays = spec.text("restartPolicy", "Always") == "Always"
    group = Group(name, (PodPlan(identity, spec),), Wish.STAYS if stays else Wish.ENDS)
    return Workload(document.title, (group,), (name,))


def read_job(document: Document, _nodes: int) -> Workload:
    """A Job, indexed or not."""
    spec = document.fields.at("spec")
    group = job_group(document.name, document.name, spec, document.namespace)
    notices = ["it is suspended: nothing starts before it is resumed"] if spec.flag("suspend") else []
    if spec.has("podFailurePolicy"):
        notices.append("podFailurePolicy is not applied: every failure counts")
    return Workload(document.title, (group,), (group.name,), notices=tuple(notices))


def job_group(
    group: str,
    name: str,
    spec: Fields,
    namespace: str,
    *,
    first_node: int = 0,
    labels: Mapping[str, str] | None = None,
) -> Group:
    """The pods of a Job.

    Args:
        group: its name within the workload.
        name: of the Job.
        spec: of the Job.
        namespace: where it is.
        first_node: of the nodes that its pods are put on, one each.
        labels: what the Job's own controller adds to its pods.

    Raises:
        UsageError: the API server would refuse the Job.
    """
    template, is_indexed = spec.at("template"), spec.text("completionMode") == "Indexed"
    if template.at("spec").text("restartPolicy", "Always") == "Always":
        raise template.at("spec").error("restartPolicy", "of a Job is Always", "OnFailure or Never")
    parallelism = spec.number("parallelism", 1)
    count = spec.number("completions", parallelism)
    if is_indexed:
        template = with_variable(template, "JOB_COMPLETION_INDEX", {"fieldRef": {"fieldPath": _INDEX_PATH}})
    own = {"batch.kubernetes.io/job-name": name, "job-name": name, **(labels or {})}
    pods = []
    for index in range(count):
        title = f"{name}-{index}"
        extra = {INDEX_KEY: str(index)} if is_indexed else {}
        identity = make_identity(
            title,
            f"{title if is_indexed else name}-{suffix(title)}",
            template,
            namespace,
            host=title if is_indexed else "",
            index=index,
            node=f"node-{first_node + index}",
            labels={**own, **extra},
            annotations={**(labels or {}), **extra},
        )
        pods.append(PodPlan(identity, template.at("spec")))
    per_index = spec.optional_number("backoffLimitPerIndex")
    limit = spec.number("backoffLimit", _PER_INDEX_LIMIT if per_index is not None else DEFAULT_BACKOFF_LIMIT)
    return Group(
        group,
        tuple(pods),
        Wish.ENDS,
        backoff_limit=limit if per_index is None else per_index,
        is_per_index=per_index is not None,
        at_a_time=parallelism if parallelism < count else None,
        deadline_s=spec.optional_number("activeDeadlineSeconds"),
    )


def read_stateful_set(document: Document, _nodes: int) -> Workload:
    """A StatefulSet; its pods have their ordinals in their names."""
    spec, name = document.fields.at("spec"), document.name
    template = with_claims(spec.at("template"), spec.each("volumeClaimTemplates"))
    # What it is called for its pods, whether or not there is such a Service.
    template = with_spec(
        template, {"subdomain": template.at("spec").text("subdomain") or spec.text("serviceName")}
    )
    first = spec.at("ordinals").number("start", 0)
    pods = []
    for index in range(first, first + spec.number("replicas", 1)):
        title = f"{name}-{index}"
        own = {
            "apps.kubernetes.io/pod-index": str(index),
            "statefulset.kubernetes.io/pod-name": title,
            "controller-revision-hash": f"{name}-{suffix(name, 10)}",
        }
        pods.append(
            PodPlan(
                make_identity(title, title, template, document.namespace, index=index, labels=own),
                template.at("spec"),
            )
        )
    is_ordered = spec.text("podManagementPolicy", "OrderedReady") != "Parallel"
    group = Group(name, tuple(pods), Wish.STAYS, is_ordered=is_ordered)
    return Workload(document.title, (group,), (name,))


def read_deployment(document: Document, _nodes: int) -> Workload:
    """A Deployment."""
    spec = document.fields.at("spec")
    stem = f"{document.name}-{suffix(document.name, 10)}"
    return _alike(
        document, stem, spec.number("replicas", 1), {"pod-template-hash": suffix(document.name, 10)}
    )


def read_daemon_set(document: Document, nodes: int) -> Workload:
    """A DaemonSet; it has a pod on each of the nodes there are."""
    return _alike(document, document.name, nodes, {"controller-revision-hash": suffix(document.name, 10)})


def _alike(document: Document, stem: str, count: int, labels: Mapping[str, str]) -> Workload:
    template = document.fields.at("spec", "template")
    pods = []
    for index in range(count):
        title = f"{document.name}-{index}"
        identity = make_identity(
            title, f"{stem}-{suffix(title)}", template, document.namespace, index=index, labels=labels
        )
        pods.append(PodPlan(identity, template.at("spec")))
    return Workload(document.title, (Group(document.name, tuple(pods), Wish.STAYS),), (document.name,))


def with_spec(template: Fields, changes: Mapping[str, object]) -> Fields:
    """A template whose pod specification has other fields."""
    spec = {**template.at("spec").raw, **changes}
    return Fields({**template.raw, "spec": spec}, template.where)


def with_variable(template: Fields, name: str, source: Mapping[str, object]) -> Fields:
    """A template each of whose containers has the variable, unless it has it already."""
    spec = template.at("spec")
    changes = {}
    for kind in ("initContainers", "containers"):
        containers = []
        for container in spec.each(kind):
            has_it = any(entry.text("name") == name for entry in container.each("env"))
            added = [] if has_it else [{"name": name, "valueFrom": source}]
            own = [entry.raw for entry in container.each("env")]
            containers.append({**container.raw, "env": [*own, *added]})
        changes[kind] = containers
    return with_spec(template, changes)


def with_claims(template: Fields, claims: tuple[Fields, ...]) -> Fields:
    """A template with a volume for each claim; one of the pod's own of that name gives way."""
    names = [claim.at("metadata").text("name") for claim in claims]
    own = [volume.raw for volume in template.at("spec").each("volumes") if volume.text("name") not in names]
    made = [{"name": name, "ephemeral": {}} for name in names]
    return with_spec(template, {"volumes": [*own, *made]})
