"""A Volcano Job's pods have what its plugins add, and its policies say what a failure or an end means."""

from __future__ import annotations

from azcp_kit.rehearse.documents import read_documents
from azcp_kit.rehearse.environment import resolve_environment
from azcp_kit.rehearse.model import Moment, Need, Wish, Workload
from azcp_kit.rehearse.pod import read_pod_plan
from azcp_kit.rehearse.store import read_store
from azcp_kit.rehearse.volcano import argument, read_volcano_job
from azcp_kit.rehearse.volumes import volume_files

from tests.kit.rehearsed import PLACE, document

TEXT = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: llama, namespace: ml}
spec:
  plugins: {env: [], svc: [], ssh: ["--ssh-port=2222"]}
  tasks:
    - name: main-one
      replicas: 1
      policies: [{event: TaskCompleted, action: CompleteJob}]
      dependsOn: {name: [worker]}
      template:
        spec:
          restartPolicy: Never
          initContainers: [{name: i, image: a}]
          containers: [{name: c, image: a}]
    - name: worker
      replicas: 2
      template: {spec: {restartPolicy: OnFailure, containers: [{name: c, image: a}]}}
"""


def made(*changes: tuple[str, str]) -> Workload:
    text = TEXT
    for old, new in changes:
        text = text.replace(old, new)
    return read_volcano_job(document(text), 2)


def test_pods_are_named_after_job_task_and_index() -> None:
    assert [pod.identity.name for pod in made().pods] == [
        "llama-main-one-0",
        "llama-worker-0",
        "llama-worker-1",
    ]
    assert {pod.identity.subdomain for pod in made().pods} == {"llama"}
    assert made().pods[2].identity.labels["volcano.sh/task-index"] == "1"


def test_every_container_is_told_its_index_and_everybodys_hosts() -> None:
    workload = made()
    store = read_store(read_documents(TEXT), [workload])
    pod = read_pod_plan(workload.pods[0])
    for container in pod.containers:
        found = resolve_environment(container.fields, PLACE, store)
        assert (found["VC_TASK_INDEX"], found["VK_TASK_INDEX"]) == ("0", "0")
        assert found["VC_WORKER_HOSTS"] == "llama-worker-0.llama,llama-worker-1.llama"
        assert (found["VC_WORKER_NUM"], found["VC_MAIN_ONE_NUM"]) == ("2", "1")
        assert [mount.path for mount in container.mounts] == ["/etc/volcano", "/root/.ssh"]


def test_hosts_and_keys_are_files_too() -> None:
    workload = made()
    store = read_store(read_documents(TEXT), [workload])
    pod = read_pod_plan(workload.pods[0])
    hosts = volume_files(pod.volumes["llama-svc"], pod.main[0].fields, PLACE, store)
    assert {f.path: f.content for f in hosts}["worker.host"] == b"llama-worker-0.llama\nllama-worker-1.llama"
    keys = {f.path: f for f in volume_files(pod.volumes["llama-ssh"], pod.main[0].fields, PLACE, store)}
    assert keys[".ssh/id_rsa"].mode == 0o600
    assert (
        b"Host llama-worker-1\n  HostName llama-worker-1.llama\n  Port 2222\n" in keys[".ssh/config"].content
    )


def test_the_completed_task_decides_and_the_others_serve_it() -> None:
    found = made()
    assert found.deciding == ("main-one",)
    assert [group.wish for group in found.groups] == [Wish.ENDS, Wish.SERVES]
    assert found.groups[0].needs == (Need("worker", Moment.READY),)


def test_without_a_policy_a_failure_does_not_end_the_others() -> None:
    found = made(("policies: [{event: TaskCompleted, action: CompleteJob}]", ""))
    assert found.deciding == ("main-one", "worker")
    assert found.groups[0].is_patient
    assert any("no policy for PodFailed" in notice for notice in found.notices)


def test_a_policy_that_restarts_has_the_jobs_retries() -> None:
    policies = "policies: [{event: PodFailed, action: RestartJob}]\n  tasks:"
    assert made(("tasks:", policies)).restarts == 3
    assert made(("tasks:", f"maxRetry: 5\n  {policies}")).restarts == 5
    aborting = made(("tasks:", policies.replace("RestartJob", "AbortJob")))
    assert (aborting.restarts, aborting.groups[0].is_patient) == (0, False)


def test_the_service_publishes_pods_that_are_not_ready_only_when_told_to() -> None:
    assert not made().services[0].publishes_not_ready
    assert made(("svc: []", "svc: [--publish-not-ready-addresses=true]")).services[0].publishes_not_ready


def test_the_plugin_mpi_brings_the_others_along_and_tells_the_master_its_hosts() -> None:
    found = made(('env: [], svc: [], ssh: ["--ssh-port=2222"]', "mpi: [--master=main-one, --worker=worker]"))
    env = {e.text("name"): e.text("value") for e in found.pods[0].spec.each("containers")[0].each("env")}
    assert env["MPI_HOST"] == "llama-worker-0.llama,llama-worker-1.llama"
    assert found.services
    assert found.secrets


def test_a_plugins_argument_is_read_as_go_reads_it() -> None:
    assert argument(("--a=1", "-b", "2", "--c"), "b", "x") == "2"
    assert argument(("--a=1", "-b", "2", "--c"), "c", "x") == "true"
    assert argument(("--a=1",), "d", "x") == "x"
