"""What JobSet (jobset.x-k8s.io/v1alpha2) makes: Jobs with names of their own, and one Service for all.

As pkg/controllers/jobset_controller.go and the defaults of its webhook do it.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Final

from azcp_kit.rehearse.documents import Document
from azcp_kit.rehearse.fields import Fields
from azcp_kit.rehearse.identity import check_name
from azcp_kit.rehearse.model import Group, Moment, Need, Service, Wish, Workload
from azcp_kit.rehearse.own_kinds import job_group, with_spec

_PREFIX: Final = "jobset.sigs.k8s.io/"
_MOMENTS: Final = {"Ready": Moment.READY, "Complete": Moment.DONE}


def read_jobset(document: Document, _nodes: int) -> Workload:
    """The Jobs of a JobSet.

    Raises:
        UsageError: it has none, or one of its names is none.
    """
    check_name(document.name, document.fields.where)
    spec = document.fields.at("spec")
    replicated = spec.each("replicatedJobs")
    if not replicated:
        raise spec.error("replicatedJobs", "is empty")
    groups: list[Group] = []
    for position, job in enumerate(replicated):
        groups.extend(_groups(document, job, _needs(spec, replicated, position), groups))
    success = spec.at("successPolicy")
    targets = success.words("targetReplicatedJobs") or tuple(job.text("name") for job in replicated)
    deciding = tuple(group.name for group in groups if _job_of(group.name) in targets)
    undecided = {group.name for group in groups} - set(deciding)
    return Workload(
        document.title,
        tuple(replace(group, wish=Wish.SERVES) if group.name in undecided else group for group in groups),
        deciding,
        any_decides=success.text("operator", "All") == "Any",
        restarts=spec.at("failurePolicy").number("maxRestarts", 0),
        services=_services(document),
        notices=("it is suspended: nothing starts before it is resumed",) if spec.flag("suspend") else (),
    )


def _job_of(group: str) -> str:
    return group.rpartition("-")[0]


def _needs(spec: Fields, jobs: tuple[Fields, ...], position: int) -> tuple[Need, ...]:
    found = [
        Need(f"{job.text('name')}-{index}", _MOMENTS.get(need.text("status"), Moment.DONE))
        for need in jobs[position].each("dependsOn")
        for job in jobs
        if job.text("name") == need.text("name")
        for index in range(job.number("replicas", 1))
    ]
    if spec.at("startupPolicy").text("startupPolicyOrder") == "InOrder" and position:
        before = jobs[position - 1]
        found += [
            Need(f"{before.text('name')}-{index}", Moment.READY)
            for index in range(before.number("replicas", 1))
        ]
    return tuple(found)


def _groups(document: Document, job: Fields, needs: tuple[Need, ...], before: list[Group]) -> list[Group]:
    groups: list[Group] = []
    for index in range(job.number("replicas", 1)):
        name = f"{document.name}-{job.text('name')}-{index}"
        group = job_group(
            f"{job.text('name')}-{index}",
            name,
            _job_spec(document, job.at("template")),
            document.namespace,
            first_node=sum(len(group.pods) for group in (*before, *groups)),
            labels=_labels(document, job, index, name),
        )
        groups.append(replace(group, needs=needs))
    return groups


def _job_spec(document: Document, template: Fields) -> Fields:
    """The Job's specification with what the webhook and the controller fill in."""
    spec = template.at("spec")
    pod = spec.at("template").at("spec")
    changes: dict[str, object] = {"restartPolicy": pod.text("restartPolicy", "OnFailure")}
    if subdomain(document):
        changes["subdomain"] = subdomain(document)
    raw = {
        **spec.raw,
        "completionMode": spec.text("completionMode", "Indexed"),
        "template": with_spec(spec.at("template"), changes).raw,
    }
    return Fields(raw, spec.where)


def subdomain(document: Document) -> str:
    """The Service's name; empty where pods have no host names."""
    network = document.fields.at("spec", "network")
    if not network.flag("enableDNSHostnames", default=True):
        return ""
    return network.text("subdomain") or document.name


def _services(document: Document) -> tuple[Service, ...]:
    name = subdomain(document)
    if not name:
        return ()
    network = document.fields.at("spec", "network")
    return (
        Service(
            document.namespace,
            name,
            {f"{_PREFIX}jobset-name": document.name},
            is_headless=True,
            publishes_not_ready=network.flag("publishNotReadyAddresses", default=True),
        ),
    )


def _labels(document: Document, job: Fields, index: int, name: str) -> dict[str, str]:
    spec = document.fields.at("spec")
    jobs = spec.each("replicatedJobs")
    counts = {entry.text("name"): entry.number("replicas", 1) for entry in jobs}
    before = sum(list(counts.values())[: list(counts).index(job.text("name"))])
    values = {
        "jobset-name": document.name,
        "replicatedjob-name": job.text("name"),
        "replicatedjob-replicas": str(counts[job.text("name")]),
        "global-replicas": str(sum(counts.values())),
        "job-index": str(index),
        "job-global-index": str(before + index),
        "job-key": hashlib.sha1(f"{document.namespace}/{name}".encode(), usedforsecurity=False).hexdigest(),
        "restart-attempt": "0",
    }
    if spec.has("coordinator"):
        chosen = spec.at("coordinator")
        place = f"{chosen.number('jobIndex', 0)}-{chosen.number('podIndex', 0)}"
        values["coordinator"] = (
            f"{document.name}-{chosen.text('replicatedJob')}-{place}.{subdomain(document)}"
        )
    return {f"{_PREFIX}{key}": value for key, value in values.items()}
