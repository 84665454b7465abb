"""MPIJob of mpi-operator, v2beta1: a launcher that runs both phases, and a worker per node."""

from __future__ import annotations

from typing import Any

from azcp_kit.manifest.write import Comment, Document
from azcp_kit.quantity import quantity
from azcp_kit.spec.job import Form, JobSpec
from azcp_kit.targets.argv import launcher_argv, sshd_argv
from azcp_kit.targets.containers import command_variables, distributor, node
from azcp_kit.targets.indexed_job import ending
from azcp_kit.targets.labels import metadata
from azcp_kit.targets.pod import launcher_pod, node_pod
from azcp_kit.targets.security import launcher_security
from azcp_kit.targets.volumes import KEYS, data_volume, shm_volume, state_volume

_LAUNCHER_BYTES = 1 << 30
"""mpirun, and an ssh connection to each of up to a thousand nodes."""


def mpijob(job: JobSpec) -> list[Document]:
    """One MPIJob."""
    spec = {
        "slotsPerWorker": max(job.resources.gpus, 1) if job.command.form is Form.MPI else 1,
        Comment(
            "Where the operator puts the job's key pair; azcp-sshd and azcp-launch look there first."
        ): None,
        "sshAuthMountPath": KEYS,
        Comment(
            "The launcher begins when every worker answers on its ssh port; no deadline counts before."
        ): None,
        "launcherCreationPolicy": "WaitForWorkersReady",
        "mpiImplementation": "OpenMPI",
        "runPolicy": _run_policy(job),
        "mpiReplicaSpecs": {"Launcher": _launcher(job), "Worker": _worker(job)},
    }
    return [
        {
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "metadata": metadata(job, queue=True),
            "spec": spec,
        }
    ]


def host_names(job: JobSpec) -> list[str]:
    """The longest names that pods will have."""
    return [f"{job.name}-launcher", f"{job.name}-worker-{job.nodes - 1}"]


def _run_policy(job: JobSpec) -> dict[Any, Any]:
    limits = job.limits
    return {
        "cleanPodPolicy": "Running",
        Comment("Each try keeps the files that are whole on the nodes."): None,
        "backoffLimit": limits.retries,
        **ending(job),
    }


def _launcher(job: JobSpec) -> dict[str, Any]:
    volumes = [state_volume()]
    container = distributor(job, launcher_argv(job), volumes, command_variables(job))
    memory = quantity(_LAUNCHER_BYTES)
    # No byte of the data goes through the launcher; the user's command has its folder and image to itself.
    container |= {
        "name": "launcher",
        "resources": {"requests": {"memory": memory}, "limits": {"memory": memory}},
        "securityContext": launcher_security(job),
    }
    return {"replicas": 1, "restartPolicy": "Never", "template": launcher_pod(job, container, volumes)}


def _worker(job: JobSpec) -> dict[str, Any]:
    volumes = [data_volume(job), shm_volume(job), state_volume()]
    template = node_pod(job, "worker", containers=[node(job, sshd_argv(), volumes)], volumes=volumes)
    return {"replicas": job.nodes, "restartPolicy": "OnFailure", "template": template}
