"""Keys that are nearly right: where the API server is not strict it drops them without a word."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from azcp_kit.lint import known_keys
from azcp_kit.lint.containers import Container
from azcp_kit.lint.finding import Finding, Rule, Severity, named
from azcp_kit.lint.located import Located
from azcp_kit.lint.manifest import Manifest
from azcp_kit.lint.near import nearest
from azcp_kit.lint.pods import Pod
from azcp_kit.lint.rules.objects import REQUIRED

MISSPELT: Final = Rule(
    "K113-misspelt-key",
    Severity.WARNING,
    why="an operator's webhook or an older client drops what it does not know: the setting is not made",
    fix="write the key as the API has it",
)

MOST_UNKNOWN: Final = 1000
"""Unknown keys that are compared; a file with more is no manifest."""

_ARGO_ROLES: Final = frozenset({"Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate", "CronWorkflow"})


def misspelt(manifest: Manifest) -> Iterator[Finding]:
    """Keys beside known ones, in all the places that other rules read."""
    unknown = (
        (node, key, known) for node, known in _places(manifest) for key in node.fields if key not in known
    )
    for node, key, known in islice(unknown, MOST_UNKNOWN):
        near = known_keys.OTHER_WORDS.get(key, "")
        near = near if near in known else nearest(key, sorted(known))
        if near and (near not in REQUIRED or near in node.fields):
            line = node.fields[key].line
            yield MISSPELT.at(line, f"there is no key {named(key)} here", fix=f"did you mean {near}?")


def _places(manifest: Manifest) -> Iterator[tuple[Located, frozenset[str]]]:
    """The mappings, each with the keys that it may have."""
    for service in manifest.of_kind("Service"):
        if known_keys.is_known(service):
            yield service, known_keys.OBJECT
            yield service.at("spec"), known_keys.SERVICE_SPEC
    for document in manifest.documents:
        kind = _kind(document) if known_keys.is_known(document) else ""
        if kind in known_keys.OWNER_SPECS or kind == "Pod":
            yield document, known_keys.OBJECT
        if kind in known_keys.OWNER_SPECS:
            yield document.at("spec"), known_keys.OWNER_SPECS[kind]
        if kind == "MPIJob":
            yield document.at("spec", "runPolicy"), known_keys.RUN_POLICY
            yield document.at("spec", "mpiReplicaSpecs"), frozenset({"Launcher", "Worker"})
        if kind == "CronJob":
            yield document.at("spec", "jobTemplate", "spec"), known_keys.JOB_SPEC
    for pod in manifest.pods:
        if known_keys.is_known(pod.owner):
            yield from _of_pod(pod)


def _kind(document: Located) -> str:
    kind = document.at("kind").text
    is_volcano = kind == "Job" and document.at("apiVersion").text.startswith("batch.volcano.sh/")
    return "VolcanoJob" if is_volcano else kind


def _of_pod(pod: Pod) -> Iterator[tuple[Located, frozenset[str]]]:
    if pod.kind in known_keys.PARTS:
        yield pod.part, known_keys.PARTS[pod.kind]
    if pod.kind == "JobSet":
        yield pod.part.at("template", "spec"), known_keys.JOB_SPEC
    # A template of Argo holds its own keys beside those of a pod.
    if pod.kind not in _ARGO_ROLES:
        if pod.kind != "Pod":
            yield pod.template, known_keys.TEMPLATE
        yield pod.spec, known_keys.POD_SPEC
    for volume in pod.volumes:
        yield volume.at("hostPath"), known_keys.HOST_PATH
        yield volume.at("emptyDir"), known_keys.EMPTY_DIR
    for container in pod.containers:
        yield from _of_container(container)


def _of_container(container: Container) -> Iterator[tuple[Located, frozenset[str]]]:
    node = container.node
    yield node, known_keys.CONTAINER
    yield node.at("securityContext"), known_keys.SECURITY_CONTEXT
    yield node.at("resources"), known_keys.RESOURCES
    for mount in node.at("volumeMounts").items:
        yield mount, known_keys.VOLUME_MOUNT
    for variable in node.at("env").items:
        yield variable, known_keys.ENV


MANIFEST_RULES: Final = (misspelt,)
