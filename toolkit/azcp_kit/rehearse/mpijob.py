"""What mpi-operator makes of an MPIJob (kubeflow.org/v2beta1): its pods, hostfile, key pair and Service.

As pkg/controller/mpi_job_controller.go of its releases 0.5 to 0.8 does it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from azcp_kit.rehearse.documents import Document
from azcp_kit.rehearse.fields import Fields
from azcp_kit.rehearse.identity import check_name, make_identity, suffix
from azcp_kit.rehearse.key_pair import KeyPair, make_key_pair
from azcp_kit.rehearse.model import Group, Made, Moment, Need, PodPlan, Service, Wish, Workload
from azcp_kit.rehearse.own_kinds import DEFAULT_BACKOFF_LIMIT, with_spec

_ROOT_SSH: Final = "/root/.ssh"
LAUNCHER_NODE: Final = "node-launcher"
"""Not counted among the nodes: it needs neither GPU nor disk."""
_PREFIX: Final = "training.kubeflow.org/"
_SSH_VOLUME: Final = "ssh-auth"
_CONFIG_VOLUME: Final = "mpi-job-config"
_CONFIG_PATH: Final = "/etc/mpi"
_SSH_ITEMS: Final = (
    ("ssh-privatekey", "id_rsa"),
    ("ssh-publickey", "id_rsa.pub"),
    ("ssh-publickey", "authorized_keys"),
)
_ARGS: Final = "-o ConnectionAttempts=10"


def read_mpijob(document: Document, _nodes: int) -> Workload:
    """The launcher and the workers of an MPIJob.

    Raises:
        UsageError: it has no launcher, or one of its names is none.
    """
    spec, name = document.fields.at("spec"), check_name(document.name, document.fields.where)
    replicas = spec.at("mpiReplicaSpecs")
    if not replicas.has("Launcher"):
        raise spec.error("mpiReplicaSpecs.Launcher", "is absent")
    policy, waits = spec.at("runPolicy"), spec.text("launcherCreationPolicy") == "WaitForWorkersReady"
    launcher = Group(
        "launcher",
        (_launcher(document, replicas.at("Launcher")),),
        Wish.ENDS,
        backoff_limit=policy.number("backoffLimit", DEFAULT_BACKOFF_LIMIT),
        deadline_s=policy.optional_number("activeDeadlineSeconds"),
        needs=(Need("worker", Moment.READY),) if waits else (),
    )
    workers = Group("worker", _workers(document, replicas.at("Worker")), Wish.SERVES)
    return Workload(
        document.title,
        (workers, launcher),
        ("launcher",),
        services=(_service(document),),
        secrets=(Made(document.namespace, f"{name}-ssh", _secret(make_key_pair())),),
        config_maps=(
            Made(
                document.namespace,
                f"{name}-config",
                {"hostfile": hostfile(document).encode(), **_script(document)},
            ),
        ),
        notices=_notices(spec, policy),
    )


def hostfile(document: Document) -> str:
    """The hostfile that the operator writes; without a cluster domain, which it has not by default."""
    spec = document.fields.at("spec")
    slots = spec.number("slotsPerWorker", 1)
    form = "{} slots={}\n" if spec.text("mpiImplementation", "OpenMPI") == "OpenMPI" else "{}:{}\n"
    return "".join(form.format(host, slots) for host in _hosts(document))


def _hosts(document: Document) -> list[str]:
    spec = document.fields.at("spec")
    count = spec.at("mpiReplicaSpecs", "Worker").number("replicas", 0)
    names = [f"{document.name}-worker-{index}" for index in range(count)]
    if spec.flag("runLauncherAsWorker"):
        names.insert(0, f"{document.name}-launcher")
    return [f"{name}.{document.name}.{document.namespace}.svc" for name in names]


def _script(document: Document) -> dict[str, bytes]:
    lines = "".join(f"echo {host}\n" for host in _hosts(document))
    return {"discover_hosts.sh": f"#!/bin/sh\n{lines}".encode()}


def _secret(keys: KeyPair) -> dict[str, bytes]:
    return {"ssh-privatekey": keys.private, "ssh-publickey": keys.public}


def _service(document: Document) -> Service:
    return Service(
        document.namespace,
        document.name,
        {f"{_PREFIX}operator-name": "mpi-operator", f"{_PREFIX}job-name": document.name},
        is_headless=True,
        publishes_not_ready=document.fields.at("spec").flag("runLauncherAsWorker"),
    )


def _workers(document: Document, replica: Fields) -> tuple[PodPlan, ...]:
    template = replica.at("template")
    main, *others = template.at("spec").each("containers") or (Fields({}, template.where),)
    added: dict[str, Any] = {}
    if not main.words("command") and not main.words("args"):
        added["command"] = ["/usr/sbin/sshd", "-De"]
    template = _completed(document, template, main, others, added, [("K_MPI_JOB_ROLE", "worker")])
    first = 1 if document.fields.at("spec").flag("runLauncherAsWorker") else 0
    restart = replica.text("restartPolicy", "Never")
    dns = template.at("spec").at("dnsConfig")
    search = f"{document.name}.{document.namespace}.svc.cluster.local"
    changes = {
        "restartPolicy": "Never" if restart == "ExitCode" else restart,
        "subdomain": document.name,
        "dnsConfig": {**dns.raw, "searches": [*dns.words("searches"), search]},
    }
    template = with_spec(template, changes)
    pods = []
    for index in range(replica.number("replicas", 0)):
        name = f"{document.name}-worker-{index}"
        labels = {**_labels(document, "worker"), f"{_PREFIX}replica-index": str(index + first)}
        # The operator overrides what the template says.
        own = with_spec(template, {"hostname": name})
        identity = make_identity(name, name, own, document.namespace, index=index, labels=labels)
        pods.append(PodPlan(identity, own.at("spec")))
    return tuple(pods)


def _launcher(document: Document, replica: Fields) -> PodPlan:
    spec, template = document.fields.at("spec"), replica.at("template")
    main, *others = template.at("spec").each("containers") or (Fields({}, template.where),)
    as_worker = spec.flag("runLauncherAsWorker")
    environment = [("K_MPI_JOB_ROLE", "launcher"), *_implementation(spec)]
    if not as_worker:
        environment += [("NVIDIA_VISIBLE_DEVICES", ""), ("NVIDIA_DRIVER_CAPABILITIES", "")]
    name = f"{document.name}-launcher"
    template = _completed(document, template, main, others, {}, environment, has_hostfile=True)
    restart = replica.text("restartPolicy", "OnFailure")
    changes = {"hostname": name, "subdomain": document.name, "restartPolicy": restart}
    template = with_spec(template, changes)
    labels = {
        **_labels(document, "launcher"),
        **({f"{_PREFIX}replica-index": "0"} if as_worker else {}),
        "job-name": name,
        "batch.kubernetes.io/job-name": name,
    }
    identity = make_identity(
        name, f"{name}-{suffix(name)}", template, document.namespace, node=LAUNCHER_NODE, labels=labels
    )
    return PodPlan(identity, template.at("spec"))


def _labels(document: Document, role: str) -> dict[str, str]:
    values = {"operator-name": "mpi-operator", "job-name": document.name, "job-role": role}
    return {f"{_PREFIX}{key}": value for key, value in values.items()}


def _implementation(spec: Fields) -> list[tuple[str, str]]:
    """What is appended to the launcher's variables, so that it wins over the user's own of that name."""
    slots, hostfile_path = str(spec.number("slotsPerWorker", 1)), f"{_CONFIG_PATH}/hostfile"
    kind = spec.text("mpiImplementation", "OpenMPI")
    if kind == "OpenMPI":
        return [
            ("OMPI_MCA_orte_keep_fqdn_hostnames", "true"),
            ("OMPI_MCA_orte_default_hostfile", hostfile_path),
            ("OMPI_MCA_plm_rsh_args", _ARGS),
            ("OMPI_MCA_orte_set_default_slots", slots),
        ]
    if kind == "Intel":
        return [
            ("I_MPI_HYDRA_HOST_FILE", hostfile_path),
            ("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", _ARGS),
            ("I_MPI_PERHOST", slots),
        ]
    return [("HYDRA_HOST_FILE", hostfile_path), ("HYDRA_LAUNCH_EXTRA_ARGS", _ARGS)]


def _completed(
    document: Document,
    template: Fields,
    main: Fields,
    others: list[Fields],
    added: Mapping[str, Any],
    environment: list[tuple[str, str]],
    *,
    has_hostfile: bool = False,
) -> Fields:
    """The template with the first container's additions; the others and the init containers get none."""
    ssh_path = document.fields.at("spec").text("sshAuthMountPath") or _ROOT_SSH
    secret: dict[str, Any] = {
        "secretName": f"{document.name}-ssh",
        "items": [{"key": key, "path": path} for key, path in _SSH_ITEMS],
    }
    if ssh_path == _ROOT_SSH:
        secret["defaultMode"] = 0o600
    volumes: list[Mapping[str, Any]] = [{"name": _SSH_VOLUME, "secret": secret}]
    mounts = [{"name": _SSH_VOLUME, "mountPath": ssh_path}]
    if has_hostfile:
        items = [
            {"key": "hostfile", "path": "hostfile", "mode": 0o444},
            {"key": "discover_hosts.sh", "path": "discover_hosts.sh", "mode": 0o555},
        ]
        volumes.append(
            {"name": _CONFIG_VOLUME, "configMap": {"name": f"{document.name}-config", "items": items}}
        )
        mounts.append({"name": _CONFIG_VOLUME, "mountPath": _CONFIG_PATH})
    first = {
        **main.raw,
        **added,
        "env": [*(e.raw for e in main.each("env")), *({"name": n, "value": v} for n, v in environment)],
        "volumeMounts": [*(m.raw for m in main.each("volumeMounts")), *mounts],
    }
    spec = template.at("spec")
    changes = {
        "containers": [first, *(other.raw for other in others)],
        "volumes": [*(volume.raw for volume in spec.each("volumes")), *volumes],
    }
    return with_spec(template, changes)


def _notices(spec: Fields, policy: Fields) -> tuple[str, ...]:
    found = []
    if policy.flag("suspend"):
        found.append("it is suspended: nothing starts before it is resumed")
    if policy.text("cleanPodPolicy", "None") == "None":
        found.append("cleanPodPolicy None leaves the workers running when the launcher is done")
    if spec.text("launcherCreationPolicy", "AtStartup") != "WaitForWorkersReady":
        found.append("the launcher starts with the workers: only its own waiting makes up for a slow one")
    return tuple(found)
