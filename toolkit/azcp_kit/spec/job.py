"""What a job is: one frozen value, from which every manifest and script follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from azcp_runtime.contract.options import AUTO, Rails

from azcp_kit.spec.cyclecloud import CycleCloud
from azcp_kit.spec.nccl import NcclTest
from azcp_kit.spec.sku import Sku
from azcp_kit.spec.slurm import Slurm


class Security(StrEnum):
    """The Pod Security Standard that the pods keep to."""

    PRIVILEGED = "privileged"
    BASELINE = "baseline"
    RESTRICTED = "restricted"


class Form(StrEnum):
    """How the user's command is started once the data is there."""

    TORCHRUN = "torchrun"
    """Once per node, torchrun put in front."""

    PLAIN = "plain"
    """Once per node, as it is, with RANK, NNODES, MASTER_ADDR and MASTER_PORT."""

    MPI = "mpi"
    """Once, on the launcher: it is an mpirun of the image's own."""


class StorageKind(StrEnum):
    """What the data lies on."""

    HOST_PATH = "host-path"
    """A folder of the node: stays when the pod is gone."""

    EPHEMERAL = "ephemeral"
    """A volume of a storage class, made and removed with the pod."""

    EMPTY_DIR = "empty-dir"
    """A folder of the kubelet's, removed with the pod."""


class WarmupForm(StrEnum):
    """How nodes are warmed up."""

    JOBS = "jobs"
    """Once on so many nodes."""

    DAEMONSET = "daemonset"
    """On each node that is there or comes."""


@dataclass(frozen=True, slots=True)
class Auth:
    """How the pods prove who they are to the account; at most one of the first three is set.

    Args:
        identity: client id of a workload identity.
        kubelet_identity: client id of the nodes' own identity.
        secret: name of a Secret.
        secret_key: which key of it, and so which variable: AZCP_SAS or AZURE_STORAGE_KEY.
        service_account: that the pods of a workload identity use.
        identity_name: of the managed identity, for the script that makes it.
        resource_group: of the cluster and the identity.
        cluster: name of the AKS cluster.
    """

    identity: str
    kubelet_identity: str
    secret: str
    secret_key: str
    service_account: str
    identity_name: str
    resource_group: str
    cluster: str


@dataclass(frozen=True, slots=True)
class Command:
    """What runs once the data is there.

    Args:
        run: its argument list; empty for none.
        form: how it is started.
        image: that it runs in, where a target has a second container.
        env: variables of its own.
        port: that it answers on once it serves; 0 for none.
    """

    run: tuple[str, ...]
    form: Form
    image: str
    env: Mapping[str, str]
    port: int


@dataclass(frozen=True, slots=True)
class Distribute:
    """How the data is brought.

    Args:
        memory_bytes: buffers of one rank.
        concurrency: connections per node; 0 lets the runtime find it.
        options: further ones of azcp-distribute.
    """

    memory_bytes: int
    concurrency: int
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Resources:
    """What a node's pod asks for; an empty text or 0 leaves it out.

    Args:
        gpus: for the user's command alone.
        gpu_resource: its name.
        rdma: name of the device plugin's resource.
        rdma_count: how many of it.
        cpu: a Kubernetes quantity.
        memory: the same, for the user's command.
        shm_bytes: of /dev/shm.
    """

    gpus: int
    gpu_resource: str
    rdma: str
    rdma_count: int
    cpu: str
    memory: str
    shm_bytes: int


@dataclass(frozen=True, slots=True)
class Storage:
    """What the data lies on.

    Args:
        kind: of volume.
        path: where it is mounted; of a host path, on the node as well.
        storage_class: of an ephemeral volume; empty for the cluster's default.
        size_bytes: of an ephemeral volume, or the most of an empty one; 0 for no limit.
    """

    kind: StorageKind
    path: str
    storage_class: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Limits:
    """How long and how often.

    Args:
        deadline_s: of the whole job; 0 for none.
        wait_s: that the nodes may take to appear.
        retries: of the whole job.
        ttl_s: after which a finished job is removed; 0 keeps it.
    """

    deadline_s: int
    wait_s: int
    retries: int
    ttl_s: int


@dataclass(frozen=True, slots=True)
class Toleration:
    """Which taint of the nodes is no hindrance; empty fields are left out."""

    key: str
    operator: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class JobSpec:
    """One job.toml, checked.

    Args:
        name: a DNS label; pods are called after it.
        namespace: empty leaves it to kubectl.
        image: that `azcp-kit build` made.
        source: Blob URL of a folder, or a directory of the pods.
        dest: directory on every node's own disk, on the storage.
        nodes: how many.
        rails: ranks per node, each bound to an HCA; AUTO for as many as there are; None for one, unbound.
        sku: facts of the VM size; None if it was not said.
        security: the Pod Security Standard.
        user: uid that the pods run as; None leaves it to the image, or to root where that is needed.
        queue: Kueue's or Volcano's; empty for none.
        priority_class: empty for none.
        pull_secret: of the images' registry; empty for none.
        host_network: the nodes' own network.
        volcano_ssh_plugin: Volcano makes the ssh keys.
        warmup: how nodes are warmed up.
        auth: who the pods are.
        command: what runs afterwards.
        distribute: how the data is brought.
        resources: what a pod asks for.
        storage: what the data lies on.
        limits: how long and how often.
        labels: of everything that is made.
        annotations: of everything that is made.
        node_selector: labels of the nodes.
        tolerations: of the pods.
        slurm: what only Slurm knows.
        cyclecloud: what the nodes of a CycleCloud cluster get.
        nccl_test: the all-reduce test of the fabric.
    """

    name: str
    namespace: str
    image: str
    source: str
    dest: str
    nodes: int
    rails: Rails | None
    sku: Sku | None
    security: Security
    user: int | None
    queue: str
    priority_class: str
    pull_secret: str
    host_network: bool
    volcano_ssh_plugin: bool
    warmup: WarmupForm
    auth: Auth
    command: Command
    distribute: Distribute
    resources: Resources
    storage: Storage
    limits: Limits
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    node_selector: Mapping[str, str]
    tolerations: tuple[Toleration, ...]
    slurm: Slurm
    cyclecloud: CycleCloud
    nccl_test: NcclTest

    @property
    def most_rails(self) -> int:
        """The most ranks that a node can get."""
        if self.rails == AUTO:
            return self.sku.hcas if self.sku else 1
        return self.rails or 1

    @property
    def is_root(self) -> bool:
        """Whether the distributor runs as root: a capability has an effect for no other user."""
        return self.security is not Security.RESTRICTED and not self.user
