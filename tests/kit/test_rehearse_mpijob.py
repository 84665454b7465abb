"""An MPIJob gets what mpi-operator gives it: names, hostfile, keys, Service, variables after the user's."""

from __future__ import annotations

import pytest
from azcp_kit.rehearse.documents import Document
from azcp_kit.rehearse.environment import resolve_environment
from azcp_kit.rehearse.model import Moment, Need, Wish
from azcp_kit.rehearse.mpijob import hostfile, read_mpijob
from azcp_kit.rehearse.pod import Pod, Restart, read_pod_plan
from azcp_kit.rehearse.store import Store
from azcp_kit.rehearse.volumes import volume_files
from azcp_runtime.contract import UsageError

from tests.kit.rehearsed import PLACE, document

TEXT = """
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: llama, namespace: ml}
spec:
  slotsPerWorker: 8
  launcherCreationPolicy: WaitForWorkersReady
  runPolicy: {cleanPodPolicy: Running, backoffLimit: 2}
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          initContainers: [{name: i, image: a}]
          containers:
            - {name: l, image: a, env: [{name: OMPI_MCA_plm_rsh_args, value: "-p 2222"}]}
            - {name: other, image: a}
    Worker:
      replicas: 2
      template: {spec: {containers: [{name: w, image: a}], hostname: mine}}
"""


def made(text: str = TEXT) -> Document:
    return document(text)


def pods(text: str = TEXT) -> tuple[Pod, Pod, Pod]:
    """Launcher and workers."""
    workers, launcher = read_mpijob(made(text), 2).groups
    first, second = (read_pod_plan(plan) for plan in workers.pods)
    return read_pod_plan(launcher.pods[0]), first, second


def variables(pod: Pod, index: int = 0) -> dict[str, str]:
    return resolve_environment(pod.main[index].fields, PLACE, Store())


def test_pods_have_the_operators_names_whatever_the_template_says() -> None:
    launcher, _, worker = pods()
    assert launcher.identity.name.startswith("llama-launcher-")
    assert (launcher.identity.host, launcher.identity.subdomain) == ("llama-launcher", "llama")
    assert (worker.identity.host, worker.identity.subdomain) == ("llama-worker-1", "llama")
    assert worker.identity.labels["training.kubeflow.org/replica-index"] == "1"
    assert worker.identity.labels["training.kubeflow.org/job-role"] == "worker"


def test_the_hostfile_names_the_workers_with_their_slots() -> None:
    lines = "llama-worker-0.llama.ml.svc slots=8\nllama-worker-1.llama.ml.svc slots=8\n"
    assert hostfile(made()) == lines
    assert hostfile(made(TEXT.replace("slotsPerWorker: 8", "mpiImplementation: MPICH"))) == (
        "llama-worker-0.llama.ml.svc:1\nllama-worker-1.llama.ml.svc:1\n"
    )


def test_the_operators_variables_come_after_the_users_own() -> None:
    launcher, worker, _ = pods()
    found = variables(launcher)
    assert found["OMPI_MCA_plm_rsh_args"] == "-o ConnectionAttempts=10"
    assert found["OMPI_MCA_orte_default_hostfile"] == "/etc/mpi/hostfile"
    assert found["OMPI_MCA_orte_keep_fqdn_hostnames"] == "true"
    assert found["OMPI_MCA_orte_set_default_slots"] == "8"
    assert found["NVIDIA_VISIBLE_DEVICES"] == ""
    assert found["K_MPI_JOB_ROLE"] == "launcher"
    assert variables(worker)["K_MPI_JOB_ROLE"] == "worker"
    assert "K_MPI_JOB_ROLE" not in variables(launcher, 1)


def test_only_the_first_container_gets_keys_and_hostfile() -> None:
    launcher, worker, _ = pods()
    assert [mount.path for mount in launcher.main[0].mounts] == ["/root/.ssh", "/etc/mpi"]
    assert [mount.path for mount in worker.main[0].mounts] == ["/root/.ssh"]
    assert launcher.main[1].mounts == launcher.init[0].mounts == ()


@pytest.mark.parametrize(("path", "mode"), [("/root/.ssh", 0o600), ("/etc/azcp/ssh", 0o644)])
def test_keys_are_private_only_where_they_are_roots_own(path: str, mode: int) -> None:
    text = TEXT.replace("slotsPerWorker: 8", f"sshAuthMountPath: {path}")
    workload = read_mpijob(made(text), 2)
    (secret,) = workload.secrets
    store = Store(secrets={(secret.namespace, secret.name): secret.content})
    pod = read_pod_plan(workload.groups[0].pods[0])
    files = volume_files(pod.volumes["ssh-auth"], pod.main[0].fields, PLACE, store)
    assert [(file.path, file.mode) for file in files] == [
        ("id_rsa", mode),
        ("id_rsa.pub", mode),
        ("authorized_keys", mode),
    ]
    assert files[0].content.startswith(b"-----BEGIN EC PRIVATE KEY-----")
    assert files[1].content == files[2].content


def test_a_worker_without_a_command_runs_sshd() -> None:
    _, worker, _ = pods()
    assert worker.main[0].command == ("/usr/sbin/sshd", "-De")
    _, own, _ = pods(TEXT.replace("{name: w, image: a}", "{name: w, image: a, args: [x]}"))
    assert own.main[0].command == ()


def test_restart_policies_are_the_replicas_own_and_not_the_templates() -> None:
    launcher, worker, _ = pods()
    assert (launcher.restart, worker.restart) == (Restart.ON_FAILURE, Restart.NEVER)


def test_the_launcher_waits_for_ready_workers_where_it_is_told_to() -> None:
    workers, launcher = read_mpijob(made(), 2).groups
    assert launcher.needs == (Need("worker", Moment.READY),)
    assert (launcher.backoff_limit, workers.wish) == (2, Wish.SERVES)
    at_once = read_mpijob(made(TEXT.replace("WaitForWorkersReady", "AtStartup")), 2)
    assert at_once.groups[1].needs == ()
    assert any("starts with the workers" in notice for notice in at_once.notices)


def test_the_service_shows_only_ready_pods_unless_the_launcher_is_a_worker() -> None:
    assert not read_mpijob(made(), 2).services[0].publishes_not_ready
    both = made(TEXT.replace("slotsPerWorker: 8", "runLauncherAsWorker: true"))
    workload = read_mpijob(both, 2)
    assert workload.services[0].publishes_not_ready
    assert hostfile(both).splitlines()[0] == "llama-launcher.llama.ml.svc slots=1"
    assert workload.groups[0].pods[0].identity.labels["training.kubeflow.org/replica-index"] == "1"


def test_workers_that_outlive_the_launcher_are_said_to() -> None:
    text = TEXT.replace("cleanPodPolicy: Running, ", "")
    assert any("leaves the workers running" in notice for notice in read_mpijob(made(text), 2).notices)


def test_a_job_without_a_launcher_is_refused() -> None:
    with pytest.raises(UsageError, match="Launcher is absent"):
        read_mpijob(made(TEXT.replace("Launcher:", "Chief:")), 2)
