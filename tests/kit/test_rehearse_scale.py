"""Every number of a manifest that means its nodes changes alike, and no other does."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from azcp_kit.rehearse.documents import Document, read_documents
from azcp_kit.rehearse.scale import Counts, changed_text, changed_words, node_count, scale

SIXTEEN = Counts(16, 3, 16)


def made(kind: str, spec: dict[str, Any], group: str = "batch/v1") -> Document:
    text = yaml.safe_dump({"apiVersion": group, "kind": kind, "metadata": {"name": "a"}, "spec": spec})
    return read_documents(text)[0]


def pod(*words: str, **env: str) -> dict[str, Any]:
    variables = [{"name": name, "value": value} for name, value in env.items()]
    return {"spec": {"containers": [{"name": "c", "image": "a", "args": list(words), "env": variables}]}}


def test_an_indexed_job_and_its_commands_become_smaller() -> None:
    template = pod("--hosts", "a-[0-15].a", "--nodes=16", "16", NNODES="16", OTHER="16")
    job = made("Job", {"completions": 16, "parallelism": 16, "template": template})
    spec = scale(job, 3).fields.raw["spec"]
    assert (spec["completions"], spec["parallelism"]) == (3, 3)
    container = spec["template"]["spec"]["containers"][0]
    assert container["args"] == ["--hosts", "a-[0-2].a", "--nodes=3", "16"]
    assert [entry["value"] for entry in container["env"]] == ["3", "16"]
    assert job.fields.raw["spec"]["completions"] == 16


def test_an_mpijob_has_fewer_workers_and_one_launcher() -> None:
    replicas = {
        "Launcher": {"replicas": 1, "template": pod("--expect-ranks", "128")},
        "Worker": {"replicas": 16},
    }
    job = made("MPIJob", {"mpiReplicaSpecs": replicas}, "kubeflow.org/v2beta1")
    found = scale(job, 3).fields.raw["spec"]["mpiReplicaSpecs"]
    assert (found["Worker"]["replicas"], found["Launcher"]["replicas"]) == (3, 1)
    assert found["Launcher"]["template"]["spec"]["containers"][0]["args"] == ["--expect-ranks", "24"]


def test_a_launcher_that_is_a_worker_is_one_of_the_nodes() -> None:
    replicas = {"Launcher": {"template": pod()}, "Worker": {"replicas": 15}}
    spec = {"runLauncherAsWorker": True, "mpiReplicaSpecs": replicas}
    job = made("MPIJob", spec, "kubeflow.org/v2beta1")
    assert node_count(job) == 16
    assert scale(job, 3).fields.raw["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 2


def test_a_volcano_jobs_gang_stays_whole() -> None:
    tasks = [
        {"name": "m", "replicas": 1, "template": pod("--nodes", "9")},
        {"name": "w", "replicas": 8, "minAvailable": 8, "template": pod("a-w-[0-7].a")},
    ]
    spec = scale(made("Job", {"minAvailable": 9, "tasks": tasks}, "batch.volcano.sh/v1alpha1"), 2).fields.raw[
        "spec"
    ]
    assert spec["minAvailable"] == 3
    assert [(task["replicas"], task.get("minAvailable")) for task in spec["tasks"]] == [(1, None), (2, 2)]
    assert spec["tasks"][0]["template"]["spec"]["containers"][0]["args"] == ["--nodes", "3"]
    assert spec["tasks"][1]["template"]["spec"]["containers"][0]["args"] == ["a-w-[0-1].a"]


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ({"replicas": 8, "template": {"spec": {}}}, (2, None)),
        ({"template": {"spec": {"parallelism": 8, "completions": 8}}}, (None, 2)),
    ],
)
def test_a_jobset_has_its_nodes_as_jobs_or_as_pods_of_one(job: dict[str, Any], expected: Any) -> None:  # noqa: ANN401 - a pair
    leader = {"name": "l", "template": {"spec": {}}}
    made_set = made("JobSet", {"replicatedJobs": [leader, {"name": "n", **job}]}, "jobset.x-k8s.io/v1alpha2")
    found = scale(made_set, 2).fields.raw["spec"]["replicatedJobs"]
    assert (found[1].get("replicas"), found[1]["template"]["spec"].get("completions")) == expected
    assert "replicas" not in found[0]


def test_replicas_change_and_a_job_of_one_pod_does_not() -> None:
    stateful = made("StatefulSet", {"replicas": 4, "template": pod()}, "apps/v1")
    assert scale(stateful, 2).fields.raw["spec"]["replicas"] == 2
    single = made("Job", {"template": pod()})
    assert scale(single, 3) is single


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("node-[0-15].x", "node-[0-2].x"),
        ("node-[00-15].x", "node-[00-02].x"),
        ("node-[1-16].x", "node-[1-3].x"),
        ("node-[0-7].x", "node-[0-7].x"),
        ("torchrun --nnodes=16 --nproc-per-node=8", "torchrun --nnodes=3 --nproc-per-node=8"),
        ("torchrun --nnodes 16 train.py --epochs 16", "torchrun --nnodes 3 train.py --epochs 16"),
        ("torchrun --nnodes=1:16", "torchrun --nnodes=1:16"),
        ("--nodes=160", "--nodes=30"),
        ("--nodes=17", "--nodes=17"),
    ],
)
def test_text_changes_only_where_it_means_the_nodes(text: str, result: str) -> None:
    assert changed_text(text, SIXTEEN) == result


def test_a_list_of_hosts_is_cut_and_ranks_are_counted_per_node() -> None:
    two = Counts(4, 2, 4)
    assert changed_words(["--hosts", "a,b,c,d", "-np", "32"], two) == ["--hosts", "a,b", "-np", "16"]
    assert changed_words(["--hosts=a,b,c,d"], two) == ["--hosts=a,b"]
    assert changed_words(["--hosts=a,b,c"], two) == ["--hosts=a,b,c"]
    assert changed_words(["/usr/bin/mpirun", "-n", "32"], two) == ["/usr/bin/mpirun", "-n", "16"]
    assert changed_words(["head", "-n", "4"], two) == ["head", "-n", "4"]
