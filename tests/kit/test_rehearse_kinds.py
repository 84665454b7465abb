"""Kubernetes' own kinds make the pods, names, labels and counts that their controllers would."""

from __future__ import annotations

import pytest
from azcp_kit.rehearse.identity import chosen_node
from azcp_kit.rehearse.model import Wish
from azcp_kit.rehearse.own_kinds import (
    read_daemon_set,
    read_deployment,
    read_job,
    read_pod,
    read_stateful_set,
)
from azcp_kit.rehearse.pod import read_pod_plan
from azcp_runtime.contract import UsageError

from tests.kit.rehearsed import document

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: llama, namespace: ml}
spec:
  completionMode: Indexed
  completions: 3
  parallelism: 3
  backoffLimit: 0
  activeDeadlineSeconds: 900
  template:
    metadata: {labels: {app: x}}
    spec:
      subdomain: llama
      restartPolicy: Never
      initContainers: [{name: i, image: a}]
      containers: [{name: c, image: a, env: [{name: JOB_COMPLETION_INDEX, value: own}]}]
"""
STATEFUL_SET = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: llama}
spec:
  serviceName: peers
  replicas: 2
  template:
    spec:
      containers: [{name: c, image: a, volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates: [{metadata: {name: data}}]
"""
ALIKE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {replicas: 2, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: a}]}}}
"""


def test_an_indexed_job_has_a_host_name_index_and_label_per_pod() -> None:
    (group,) = read_job(document(JOB), 3).groups
    identities = [pod.identity for pod in group.pods]
    assert [i.host for i in identities] == ["llama-0", "llama-1", "llama-2"]
    assert identities[2].name.startswith("llama-2-")
    assert identities[2].labels["batch.kubernetes.io/job-completion-index"] == "2"
    assert identities[2].labels["job-name"] == "llama"
    assert identities[2].labels["app"] == "x"
    assert identities[1].annotations["batch.kubernetes.io/job-completion-index"] == "1"
    assert [i.node for i in identities] == ["node-0", "node-1", "node-2"]
    assert (group.backoff_limit, group.deadline_s, group.wish) == (0, 900, Wish.ENDS)


def test_every_container_of_an_indexed_job_has_its_index_unless_it_sets_one() -> None:
    (group,) = read_job(document(JOB), 3).groups
    pod = read_pod_plan(group.pods[0])
    init, main = (container.fields.each("env") for container in pod.containers)
    assert [entry.text("name") for entry in init] == ["JOB_COMPLETION_INDEX"]
    assert [entry.text("value") for entry in main] == ["own"]


def test_a_plain_job_runs_as_many_at_a_time_as_its_parallelism() -> None:
    text = JOB.replace("Indexed", "NonIndexed").replace("parallelism: 3", "parallelism: 2")
    (group,) = read_job(document(text), 3).groups
    assert (len(group.pods), group.at_a_time) == (3, 2)
    assert group.pods[0].identity.host.startswith("llama-")
    assert len({pod.identity.name for pod in group.pods}) == 3


def test_a_limit_per_index_replaces_the_jobs_own() -> None:
    text = JOB.replace("backoffLimit: 0", "backoffLimitPerIndex: 2")
    (group,) = read_job(document(text), 3).groups
    assert (group.backoff_limit, group.is_per_index) == (2, True)


def test_a_suspended_job_is_said_to_be_so() -> None:
    found = read_job(document(JOB.replace("completions: 3", "completions: 3\n  suspend: true")), 3)
    assert "suspended" in found.notices[0]


def test_a_stateful_set_has_ordinals_its_service_and_a_volume_per_claim() -> None:
    found = read_stateful_set(document(STATEFUL_SET), 2)
    (group,) = found.groups
    assert [pod.identity.name for pod in group.pods] == ["llama-0", "llama-1"]
    assert group.pods[1].identity.subdomain == "peers"
    assert group.pods[1].identity.labels["apps.kubernetes.io/pod-index"] == "1"
    assert "data" in read_pod_plan(group.pods[0]).volumes
    assert (group.is_ordered, group.wish) == (True, Wish.STAYS)
    parallel = STATEFUL_SET.replace("replicas: 2", "replicas: 2\n  podManagementPolicy: Parallel")
    assert not read_stateful_set(document(parallel), 2).groups[0].is_ordered


def test_a_deployment_and_a_daemon_set_have_pods_that_stay() -> None:
    web = read_deployment(document(ALIKE), 5).groups[0]
    every = read_daemon_set(document(ALIKE.replace("Deployment", "DaemonSet")), 5).groups[0]
    assert (len(web.pods), len(every.pods), every.wish) == (2, 5, Wish.STAYS)
    assert web.pods[0].identity.title == "web-0"
    assert web.pods[0].identity.labels.keys() == {"app", "pod-template-hash"}


def test_a_bare_pod_ends_or_stays_as_its_restart_policy_says() -> None:
    text = (
        "kind: Pod\nmetadata: {name: one}\nspec: {restartPolicy: RESTART, containers: [{name: c, image: a}]}"
    )
    wishes = [read_pod(document(text.replace("RESTART", p)), 1).groups[0].wish for p in ("Never", "Always")]
    assert wishes == [Wish.ENDS, Wish.STAYS]


@pytest.mark.parametrize(
    "spec",
    [
        "nodeName: gpu-7",
        "nodeSelector: {kubernetes.io/hostname: gpu-7}",
        (
            "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
            "[{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [gpu-7]}]}]}}}"
        ),
    ],
)
def test_a_pod_that_can_only_be_on_one_node_is_there(spec: str) -> None:
    text = f"kind: Pod\nmetadata: {{name: a}}\nspec:\n  {spec}\n  containers: [{{name: c, image: a}}]"
    found = document(text)
    assert chosen_node(found.fields.at("spec")) == "gpu-7"
    assert read_pod(found, 1).groups[0].pods[0].identity.node == "gpu-7"


@pytest.mark.parametrize("name", ["", "Upper", "a b", "../x", "a" * 254, "-a"])
def test_a_name_that_the_api_server_refuses_is_refused(name: str) -> None:
    text = f'kind: Pod\nmetadata: {{name: "{name}"}}\nspec: {{containers: [{{name: c, image: a}}]}}'
    with pytest.raises(UsageError, match="no name of an object"):
        read_pod(document(text), 1)


def test_a_host_name_that_is_too_long_is_refused() -> None:
    with pytest.raises(UsageError, match="no DNS label of at most 63"):
        read_job(document(JOB.replace("name: llama,", f"name: {'l' * 70},")), 3)
