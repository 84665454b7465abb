"""The linter on objects of a wrong kind, without pods, and with misspelt keys."""

from __future__ import annotations

import pytest
from azcp_kit.lint.check import lint_text
from azcp_kit.lint.finding import Finding, Severity
from azcp_kit.lint.near import nearest

from tests.kit.lint.samples import findings, line_of, rules, sample


def found(text: str, number: str) -> Finding:
    """The one finding of a rule."""
    (only,) = [finding for finding in lint_text(text) if finding.rule.startswith(number)]
    return only


@pytest.mark.parametrize("kind", ["MPIjob", "MpiJob", "MPIJobs", "MPJob"])
def test_a_kind_that_is_nearly_right_is_an_error_with_the_right_name(kind: str) -> None:
    text = sample("launcher.yaml").replace("kind: MPIJob", f"kind: {kind}")
    assert found(text, "K110").fix == "did you mean MPIJob?"
    assert found(text, "K110").severity is Severity.ERROR
    assert found(text, "K110").line == line_of(text, "kind:")


@pytest.mark.parametrize(
    ("kind", "version", "right"),
    [
        ("MPIJob", "kubeflow.org/v2beta", "kubeflow.org/v2beta1"),
        ("MPIJob", "kubeflow.org/V2beta1", "kubeflow.org/v2beta1"),
        ("Job", "v1", "batch/v1"),
        ("Deployment", "apps/v1beta1", "apps/v1"),
        ("CronJob", "batch/v1beta1", "batch/v1"),
    ],
)
def test_a_version_that_is_nearly_right_is_an_error_with_the_right_one(
    kind: str, version: str, right: str
) -> None:
    assert found(f"apiVersion: {version}\nkind: {kind}\n", "K110").fix == f"did you mean {right}?"


def test_a_misspelt_kind_or_version_key_is_an_error() -> None:
    text = sample("launcher.yaml").replace("apiVersion:", "apiversion:")
    assert found(text, "K110").fix == "did you mean apiVersion where 'apiversion' stands?"
    assert found(f"{sample('peers.yaml')}---\nmetadata: {{}}\nkind: Pod\n", "K110").fix == "add apiVersion"


@pytest.mark.parametrize("kind", ["RayJob", "TFJob", "Ingress", "Role", "Node"])
def test_an_object_that_lint_cannot_judge_is_said_in_a_note(kind: str) -> None:
    note = found(f"apiVersion: example.com/v1\nkind: {kind}\n", "K111")
    assert (note.severity, note.what) == (Severity.NOTE, f"not judged: kind '{kind}'")


def test_a_known_kind_of_a_strange_group_is_not_judged() -> None:
    text = "apiVersion: serving.knative.dev/v1\nkind: Service\nspec:\n  template: {}\n"
    assert rules(text, notes=True) == ["K111n"]


@pytest.mark.parametrize(
    ("old", "new", "fix"),
    [
        ("ReplicaSpecs:", "ReplicasSpecs:", "did you mean mpiReplicaSpecs where 'mpiReplicasSpecs' stands?"),
        ("    Worker:", "    worker:", "did you mean Worker where 'worker' stands?"),
        ("    Launcher:", "    Master:", "add Launcher; there is 'Master', 'Worker'"),
    ],
)  # fmt: skip
def test_an_mpi_job_without_a_part_is_an_error_with_the_nearest_key(old: str, new: str, fix: str) -> None:
    text = sample("launcher.yaml").replace(old, new)
    assert found(text, "K112").fix == fix
    assert found(text, "K112").severity is Severity.ERROR
    assert "K113w" not in rules(text)


def test_a_launcher_that_works_too_needs_no_workers() -> None:
    text = sample("launcher.yaml").partition("    Worker:")[0]
    assert "K112e" in rules(text)
    assert "K112e" not in rules(text.replace("  slotsPer", "  runLauncherAsWorker: true\n  slotsPer"))


@pytest.mark.parametrize(
    ("kind", "api", "spec", "missing"),
    [
        ("Job", "batch/v1", "templates: {}", "template"),
        ("StatefulSet", "apps/v1", "replicas: 1", "template"),
        ("Deployment", "apps/v1", "template: {spec: {containers: []}}", "containers"),
        ("CronJob", "batch/v1", "schedule: x", "jobTemplate"),
        ("Pod", "v1", "container: []", "containers"),
        ("JobSet", "jobset.x-k8s.io/v1alpha2", "replicatedJobs: [{name: a}]", "template"),
        ("Job", "batch.volcano.sh/v1alpha1", "task: []", "tasks"),
    ],
)
def test_an_owner_without_a_pod_template_is_an_error(kind: str, api: str, spec: str, missing: str) -> None:
    text = f"apiVersion: {api}\nkind: {kind}\nmetadata: {{name: a}}\nspec: {{{spec}}}\n"
    assert found(text, "K112").what == f"the '{kind}' has no {missing}"


@pytest.mark.parametrize(
    ("old", "new", "right"),
    [
        ("      replicas: 4", "      replica: 4", "replicas"),
        ("volumeMounts:", "volumeMount:", "volumeMounts"),
        ("mountPath: /mnt/nvme", "mountpath: /mnt/nvme", "mountPath"),
        ("              readinessProbe:", "              readynessProbe:", "readinessProbe"),
        ("securityContext:", "securitycontext:", "securityContext"),
        ("slotsPerWorker:", "slotPerWorker:", "slotsPerWorker"),
        ("cleanPodPolicy:", "cleanPodsPolicy:", "cleanPodPolicy"),
        ("sizeLimit:", "sizelimit:", "sizeLimit"),
    ],
)
def test_a_misspelt_key_is_a_warning_with_the_right_one(old: str, new: str, right: str) -> None:
    text = sample("launcher.yaml").replace(old, new)
    assert found(text, "K113").fix == f"did you mean {right}?"
    assert found(text, "K113").line == line_of(text, new)


@pytest.mark.parametrize(
    ("old", "new", "right"),
    [
        ("initContainers:", "initContainer:", "initContainers"),
        ("command: [serve", "commands: [serve", "command"),
        ("command: [serve", "cmd: [serve", "command"),
        ("command: [serve", "Command: [serve", "command"),
        ("command: [serve", "entrypoint: [serve", "command"),
        ("publishNotReadyAddresses:", "publishNotReadyAddress:", "publishNotReadyAddresses"),
        ("backoffLimit:", "backOffLimit:", "backoffLimit"),
    ],
)
def test_a_misspelt_key_of_a_job_and_its_service_is_a_warning(old: str, new: str, right: str) -> None:
    assert findings(sample("peers.yaml").replace(old, new))["K113w"].fix == f"did you mean {right}?"


def test_a_key_that_is_like_no_other_is_left_to_the_api_server() -> None:
    assert rules(sample("peers.yaml").replace("completionMode:", "somethingNew: 1\n  completionMode:")) == []


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("jbo", "job", ""),
        ("nmae", "name", "name"),
        ("comand", "command", "command"),
        ("contianerss", "containers", "containers"),
        ("entirely", "containers", ""),
        ("x" * 100, "x" * 101, ""),
    ],
)
def test_a_slip_is_one_or_two_letters(word: str, known: str, meant: str) -> None:
    assert nearest(word, (known,)) == meant
