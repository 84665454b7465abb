"""A manifest becomes a plan: pods with names, Secrets that are made up, and a list of what stays unknown."""

from __future__ import annotations

from typing import Any

import pytest
from azcp_kit.rehearse.account import Source
from azcp_kit.rehearse.made_up import MADE_UP, make_up
from azcp_kit.rehearse.model import Service
from azcp_kit.rehearse.names import hosts_text, names_of
from azcp_kit.rehearse.plan import make_plan
from azcp_kit.rehearse.store import Store
from azcp_runtime.contract import UsageError

from tests.kit.rehearsed import MAIN, plan, pod

URL = "https://exampleacct.blob.core.windows.net/models/llama/"
HEADLESS = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "llama"},
    "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"job-name": "llama"}},
}


def job(completions: int = 16, metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - parts of a pod
    command = ["/opt/azcp/bin/azcp-launch", URL, "/data/set", "--hosts", "llama-[0-15].llama", "--every-node"]
    pod_spec = {"subdomain": "llama", "containers": [{**MAIN, "command": command}], **spec}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "llama", **(metadata or {})},
        "spec": {
            "completionMode": "Indexed",
            "completions": completions,
            "parallelism": completions,
            "template": {"spec": {"restartPolicy": "Never", **pod_spec}},
        },
    }


def test_a_large_job_is_rehearsed_with_three_nodes_unless_more_are_asked_for() -> None:
    few = plan(HEADLESS, job())
    assert (few.nodes, few.manifest_nodes, len(few.all_pods)) == (3, 16, 3)
    assert few.all_pods[0].main[0].command[4] == "llama-[0-2].llama"
    assert len(plan(HEADLESS, job(), nodes=5).all_pods) == 5
    assert len(plan(HEADLESS, job(completions=2)).all_pods) == 2


def test_what_the_commands_distribute_is_known_beforehand() -> None:
    found = plan(HEADLESS, job())
    assert found.sources == (Source("exampleacct", "models", "llama"),)
    assert {task.distribution.destination for task in found.tasks} == {"/data/set"}
    assert len(found.tasks) == 3


def test_a_source_that_is_put_together_from_variables_is_found() -> None:
    env = [{"name": "ACCOUNT", "value": "acctone"}]
    command = ["azcp-distribute", "https://$(ACCOUNT).blob.core.windows.net/c12/p", "/d"]
    found = plan(job(containers=[{**MAIN, "command": command, "env": env}]))
    assert found.sources == (Source("acctone", "c12", "p"),)


@pytest.mark.parametrize("nodes", [0, -1, 65])
def test_a_number_of_nodes_that_no_machine_holds_is_refused(nodes: int) -> None:
    if nodes:
        with pytest.raises(UsageError, match="are not rehearsed on one machine"):
            plan(job(), nodes=nodes)
    else:
        assert plan(job(), nodes=None).nodes == 3


def test_more_pods_than_a_machine_holds_are_refused_before_they_are_thought_of() -> None:
    sets: list[dict[str, Any]] = [
        {"name": name, "template": {"spec": {"completions": n}}} for name, n in (("a", 2), ("b", 10**9))
    ]
    sets.append({"name": "c", "replicas": 10**9 - 1, "template": {"spec": {}}})
    crowd = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "crowd"},
        "spec": {"replicatedJobs": sets},
    }
    with pytest.raises(UsageError, match="more than 128 pods on one machine: JobSet crowd"):
        plan(crowd)


def test_documents_that_are_not_rehearsed_are_named_and_nothing_else_is_refused() -> None:
    workflow = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "w"}}
    assert plan(HEADLESS, job(), workflow).skipped == ("Workflow w",)
    with pytest.raises(UsageError, match="it has Workflow, Service"):
        plan(workflow, HEADLESS)


def test_another_version_of_an_mpijob_is_refused() -> None:
    with pytest.raises(UsageError, match="MPIJob a is of kubeflow.org/v1; write kubeflow.org/v2beta1"):
        make_plan("apiVersion: kubeflow.org/v1\nkind: MPIJob\nmetadata: {name: a}\n", None)


def test_what_cannot_be_shown_is_listed_once() -> None:
    resources = {"limits": {"nvidia.com/gpu": 8, "rdma/ib": 1, "cpu": "90"}}
    context = {"privileged": True, "capabilities": {"add": ["IPC_LOCK", "SYS_ADMIN"]}}
    container = {**MAIN, "resources": resources, "securityContext": context, "livenessProbe": {"exec": {}}}
    metadata = {"labels": {"kueue.x-k8s.io/queue-name": "q"}}
    spec: dict[str, Any] = {
        "hostNetwork": True,
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
    }
    found = plan(job(metadata=metadata, **spec)).unshown
    for word in (
        "Kueue",
        "hostNetwork",
        "tolerations",
        "nvidia.com/gpu, rdma/ib: there is none here",
        "cpu: requests and limits are not enforced",
        "privileged: true",
        "capability SYS_ADMIN",
        "IPC_LOCK: how much",
        "livenessProbe",
        "no Service llama in the manifest",
        "service account's token",
    ):
        assert sum(word in line for line in found) == 1, word


def test_a_secret_that_the_manifest_lacks_is_made_up_with_the_keys_that_are_asked_for() -> None:
    keys = {"name": "keys", "secret": {"secretName": "job-ssh"}}
    token = {"name": "token", "secret": {"secretName": "token"}}
    mounts = [{"name": "keys", "mountPath": "/etc/azcp/ssh"}, {"name": "token", "mountPath": "/run/secrets"}]
    container = {
        **MAIN,
        "args": ["--sas-file", "/run/secrets/sas"],
        "volumeMounts": mounts,
        "env": [
            {"name": "K", "valueFrom": {"secretKeyRef": {"name": "storage", "key": "key"}}},
            {"name": "O", "valueFrom": {"secretKeyRef": {"name": "no", "key": "k", "optional": True}}},
        ],
    }
    made = {
        m.name: m.content
        for m in make_up([pod({"containers": [container], "volumes": [keys, token]})], Store())
    }
    assert made.keys() == {"storage", "job-ssh", "token"}
    assert made["storage"] == {"key": MADE_UP}
    assert made["job-ssh"].keys() == {"ssh-privatekey", "ssh-publickey"}
    assert made["job-ssh"]["ssh-publickey"].startswith(b"ecdsa-sha2-nistp521 ")
    assert made["token"].keys() == {"sas"}


def test_a_secret_of_the_manifest_is_taken_as_it_is() -> None:
    env = [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "storage", "key": "key"}}}]
    secret = {
        "kind": "Secret",
        "metadata": {"name": "storage"},
        "stringData": {"key": "v"},
        "data": {"b": "eA=="},
    }
    found = plan(secret, job(containers=[{**MAIN, "env": env}]))
    assert found.made_up == ()
    assert found.store.secrets["default", "storage"] == {"b": b"x", "key": b"v"}


def test_a_secret_whose_data_is_no_base64_is_refused() -> None:
    with pytest.raises(UsageError, match="Secret s: data.k is no base64"):
        plan({"kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "%"}}, job())


def service(*, publishes: bool, is_headless: bool = True) -> Service:
    return Service("ml", "llama", {"app": "llama"}, is_headless, publishes)


def test_a_pod_is_found_under_every_form_of_its_name_at_once_or_when_it_is_ready() -> None:
    own = pod({})
    forms = (
        "llama-1.llama",
        "llama-1.llama.ml",
        "llama-1.llama.ml.svc",
        "llama-1.llama.ml.svc.cluster.local",
    )
    at_once = names_of(own, [service(publishes=True)], ())
    assert set(forms) < set(at_once.at_once)
    assert at_once.when_ready == ()
    ready = names_of(own, [service(publishes=False)], ())
    assert (ready.at_once, set(forms) < set(ready.when_ready)) == ((), True)


def test_a_short_name_is_found_where_somebody_searches_its_domain() -> None:
    found = names_of(pod({}), [service(publishes=True)], ("llama.ml.svc.cluster.local",))
    assert "llama-1" in found.at_once


def test_a_service_with_an_address_of_its_own_gives_pods_no_names_below_it() -> None:
    found = names_of(pod({}), [service(publishes=False, is_headless=False)], ())
    assert found.when_ready == ("llama", "llama.ml", "llama.ml.svc", "llama.ml.svc.cluster.local")


def test_a_service_of_another_namespace_or_without_a_selector_gives_no_name() -> None:
    others = [
        Service("other", "llama", {"app": "llama"}, True, True),
        Service("ml", "llama", {}, True, True),
        Service("ml", "llama", {"app": "other"}, True, True),
    ]
    assert names_of(pod({}), others, ()).at_once == ()


def test_the_hosts_file_is_the_kubelets_with_what_dns_would_say() -> None:
    own = pod({"hostAliases": [{"ip": "10.0.0.9", "hostnames": ["a", "b"]}]})
    lines = hosts_text(own, "172.20.0.3", {"172.20.0.4": ("llama-2.llama",), "172.20.0.5": ()}).splitlines()
    assert lines[0] == "# Kubernetes-managed hosts file."
    assert lines[-3:] == [
        "172.20.0.3\tllama-1.llama.ml.svc.cluster.local\tllama-1",
        "10.0.0.9\ta b",
        "172.20.0.4\tllama-2.llama",
    ]
