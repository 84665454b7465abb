"""A JobSet's Jobs have the names, labels, order and ends that its controller gives them."""

from __future__ import annotations

from azcp_kit.rehearse.jobset import read_jobset
from azcp_kit.rehearse.model import Moment, Need, Wish, Workload

from tests.kit.rehearsed import document

TEXT = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: llama}
spec:
  failurePolicy: {maxRestarts: 2}
  replicatedJobs:
    - name: driver
      template: {spec: {template: {spec: {containers: [{name: c, image: a}]}}}}
    - name: node
      replicas: 2
      template:
        spec: {completions: 2, parallelism: 2, template: {spec: {containers: [{name: c, image: a}]}}}
"""


def made(*changes: tuple[str, str]) -> Workload:
    text = TEXT
    for old, new in changes:
        text = text.replace(old, new)
    return read_jobset(document(text), 2)


def test_pods_are_named_after_set_job_and_both_indexes() -> None:
    found = made()
    assert [pod.identity.host for pod in found.pods] == [
        "llama-driver-0-0",
        "llama-node-0-0",
        "llama-node-0-1",
        "llama-node-1-0",
        "llama-node-1-1",
    ]
    assert {pod.identity.subdomain for pod in found.pods} == {"llama"}
    assert [pod.identity.node for pod in found.pods] == [f"node-{index}" for index in range(5)]


def test_labels_and_annotations_tell_a_pod_its_place() -> None:
    identity = made().pods[3].identity
    for values in (identity.labels, identity.annotations):
        assert values["jobset.sigs.k8s.io/job-index"] == "1"
        assert values["jobset.sigs.k8s.io/job-global-index"] == "2"
        assert values["jobset.sigs.k8s.io/replicatedjob-name"] == "node"
        assert values["batch.kubernetes.io/job-completion-index"] == "0"


def test_jobs_are_indexed_and_restart_on_failure_unless_they_say_otherwise() -> None:
    pod = made().pods[0]
    assert pod.spec.text("restartPolicy") == "OnFailure"
    assert pod.spec.each("containers")[0].each("env")[0].text("name") == "JOB_COMPLETION_INDEX"


def test_the_service_publishes_pods_that_are_not_ready_by_default() -> None:
    (service,) = made().services
    assert (service.name, service.publishes_not_ready, service.is_headless) == ("llama", True, True)
    assert service.selects(made().pods[0].identity)
    network = "network: {subdomain: peers, publishNotReadyAddresses: false}\n  failurePolicy"
    (other,) = made(("failurePolicy", network)).services
    assert (other.name, other.publishes_not_ready) == ("peers", False)
    assert made(("failurePolicy", "network: {enableDNSHostnames: false}\n  failurePolicy")).services == ()


def test_all_jobs_decide_unless_the_success_policy_names_some() -> None:
    assert made().deciding == ("driver-0", "node-0", "node-1")
    assert made().restarts == 2
    policy = "successPolicy: {operator: Any, targetReplicatedJobs: [driver]}\n  failurePolicy"
    some = made(("failurePolicy", policy))
    assert (some.deciding, some.any_decides) == (("driver-0",), True)
    assert [group.wish for group in some.groups] == [Wish.ENDS, Wish.SERVES, Wish.SERVES]


def test_a_job_waits_for_those_before_it_where_it_is_told_to() -> None:
    in_order = made(("failurePolicy", "startupPolicy: {startupPolicyOrder: InOrder}\n  failurePolicy"))
    assert in_order.groups[2].needs == (Need("driver-0", Moment.READY),)
    needs = made(("replicas: 2", "replicas: 2\n      dependsOn: [{name: driver, status: Complete}]"))
    assert needs.groups[1].needs == (Need("driver-0", Moment.DONE),)


def test_the_coordinators_address_is_on_every_pod() -> None:
    chosen = made(("failurePolicy", "coordinator: {replicatedJob: node, podIndex: 1}\n  failurePolicy"))
    address = chosen.pods[0].identity.labels["jobset.sigs.k8s.io/coordinator"]
    assert address == "llama-node-0-1.llama"
