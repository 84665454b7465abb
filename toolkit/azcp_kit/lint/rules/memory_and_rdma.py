"""What the fabric needs of a pod: the device, the right to lock memory, /dev/shm, and room for all of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from azcp_kit.lint.containers import FABRIC, Container
from azcp_kit.lint.finding import Finding, Rule, Severity, named
from azcp_kit.lint.located import Located
from azcp_kit.lint.manifest import Manifest
from azcp_kit.lint.pods import Pod
from azcp_kit.lint.rules.quantity import quantity_bytes, size_bytes
from azcp_kit.lint.settings import MPIRUN
from azcp_kit.lint.shell import Command
from azcp_kit.units import format_size

SHM: Final = "/dev/shm"  # noqa: S108 - a path in a pod, not here

NO_IPC_LOCK: Final = Rule(
    "K401-rdma-without-ipc-lock",
    Severity.WARNING,
    why="memory cannot be registered with the adapter beyond the memlock limit, 64 KiB to 8 MiB on most"
    " nodes: UCX quietly takes TCP, a tenth of the speed",
    fix="add securityContext.capabilities.add: [IPC_LOCK] and run as root",
)
NO_DEVICE: Final = Rule(
    "K402-rdma-without-device",
    Severity.WARNING,
    why="UCX or NCCL is told to use the fabric, but the pod gets no device of it",
    fix="ask for the device plugin's resource, such as rdma/ib, in limits (resources.rdma in job.toml)",
)
IPC_LOCK_ALONE: Final = Rule(
    "K403-ipc-lock-without-device",
    Severity.NOTE,
    why="the right to lock memory is of use only with the fabric's device",
    fix="ask for rdma/ib too, or leave IPC_LOCK out, which the baseline level forbids",
)
BARE_DEVICE_PATH: Final = Rule(
    "K404-device-by-host-path",
    Severity.WARNING,
    why="a hostPath shows the device files, but the device cgroup refuses to open them unless the container"
    " is privileged",
    fix="use the device plugin's resource, such as rdma/ib, instead of the mount",
)
IPC_LOCK_FOR_USER: Final = Rule(
    "K405-ipc-lock-for-a-user",
    Severity.ERROR,
    why="an added capability is never effective for a user other than root: CapEff stays 0, memory cannot be"
    " locked",
    fix="run this container as root (runAsUser: 0), or have memlock raised on the nodes and drop IPC_LOCK",
)
NO_SHM: Final = Rule(
    "K406-small-dev-shm",
    Severity.WARNING,
    why=f"{SHM} has 64 MiB: MPI's and NCCL's shared memory ends in a bus error",
    fix=f"mount an emptyDir with medium: Memory and a sizeLimit at {SHM} (resources.shm in job.toml)",
)
SHM_WITHOUT_LIMIT: Final = Rule(
    "K407-memory-volume-without-limit",
    Severity.WARNING,
    why="it may fill half of the node's memory, all of which counts as the pod's own",
    fix="give the emptyDir a sizeLimit (resources.shm in job.toml), and count it in the container's memory"
    " limit",
)
LIMIT_TOO_SMALL: Final = Rule(
    "K408-memory-limit-too-small",
    Severity.ERROR,
    why="buffers and memory volumes count against the container's memory limit; beyond it the"
    " container is killed",
    fix="raise limits.memory (resources.memory in job.toml), or make the volume or the buffers smaller",
)
UNEQUAL_DEVICE: Final = Rule(
    "K409-device-not-in-limits",
    Severity.ERROR,
    why="the API server refuses a device that is only requested",
    fix="write the same number under limits",
)

_FABRIC_TRANSPORT: Final = re.compile(r"(?:^|,)(?:rc|dc|ud|ib)(?:_\w+)?(?:,|$)")


def ipc_lock(pod: Pod, manifest: Manifest) -> Iterator[Finding]:
    """The device and the right to lock memory belong together, and the right to root."""
    together = (c for other in manifest.pods_beside(pod) for c in other.containers)
    is_known = any("IPC_LOCK" in container.added_capabilities for container in together)
    for container in pod.containers:
        line = container.added_capabilities.get("IPC_LOCK")
        name = named(container.name)
        on_fabric = pod.is_on_fabric(container)
        if line is not None and pod.user_of(container):
            yield IPC_LOCK_FOR_USER.at(line, f"container {name} adds IPC_LOCK and does not run as root")
        elif line is not None and not on_fabric:
            yield IPC_LOCK_ALONE.at(line, f"container {name} adds IPC_LOCK but has no device of the fabric")
        elif line is None and on_fabric and not container.is_privileged and pod.is_peer:
            # Given to another container of the job, it may be left out here on purpose.
            severity = Severity.NOTE if is_known else Severity.WARNING
            what = f"container {name} has the fabric's device but not IPC_LOCK"
            yield NO_IPC_LOCK.at(_device_line(container), what, severity=severity)


def _device_line(container: Container) -> int:
    lines = (value.line for name, value in container.resources().items() if FABRIC.fullmatch(name))
    return next(lines, container.line)


def device(pod: Pod, manifest: Manifest) -> Iterator[Finding]:
    """Where the fabric is asked for, the pods of the ranks have its device."""
    for container in pod.containers:
        asking = next(
            (
                s
                for s in container.settings
                if s.name == "UCX_TLS" and _FABRIC_TRANSPORT.search(s.value or "")
            ),
            None,
        )
        ranks = manifest.worker_of(pod)
        if asking and not any(ranks.is_on_fabric(c) or c.is_privileged for c in ranks.containers):
            yield NO_DEVICE.at(asking.line, f"UCX_TLS asks for the fabric, {ranks.title} has no device of it")


def device_resources(pod: Pod, _manifest: Manifest) -> Iterator[Finding]:
    """A device in requests but not in limits, or shown by a hostPath."""
    for container in pod.containers:
        limits = container.resources("limits")
        for name, value in container.resources("requests").items():
            if "/" in name and name not in limits:
                yield UNEQUAL_DEVICE.at(value.line, f"{named(name)} is requested but has no limit")
        for mount in container.mounts:
            is_device = pod.host_path_of(mount.volume).startswith("/dev/infiniband")
            if is_device and not container.is_privileged and not container.has_fabric_resource:
                yield BARE_DEVICE_PATH.at(mount.line, "/dev/infiniband is mounted from the node")


def shared_memory(pod: Pod, manifest: Manifest) -> Iterator[Finding]:
    """Enough shared memory where ranks or GPUs use it."""
    launches_elsewhere = pod.kind == "MPIJob" and manifest.worker_of(pod) is not pod
    if launches_elsewhere or pod.spec.at("hostIPC").is_true:
        return
    for container in pod.containers:
        needs = container.has_fabric_resource or container.gpus > 1 or container.runs(*MPIRUN)
        if needs and all(mount.path != SHM for mount in container.mounts):
            yield NO_SHM.at(container.line, f"container {named(container.name)} has the default {SHM}")


def memory_volumes(pod: Pod, _manifest: Manifest) -> Iterator[Finding]:
    """Volumes in memory: bounded."""
    for volume in pod.volumes:
        folder = volume.at("emptyDir")
        if folder.at("medium").text == "Memory" and not folder.at("sizeLimit"):
            yield SHM_WITHOUT_LIMIT.at(
                folder.line, f"volume {named(volume.at('name').text)} has no sizeLimit"
            )


def memory_limit(pod: Pod, manifest: Manifest) -> Iterator[Finding]:
    """The volumes in memory and the program's buffers fit the limit."""
    for container in pod.containers:
        limit = container.resources("limits").get("memory", Located(0))
        limit_bytes = quantity_bytes(limit.text)
        volume_bytes = _memory_volume_bytes(pod, container)
        buffers = _largest_buffers(pod, container, manifest)
        if limit_bytes is not None and (volume_bytes or buffers) and volume_bytes + buffers >= limit_bytes:
            yield LIMIT_TOO_SMALL.at(limit.line, _too_small(limit_bytes, volume_bytes, buffers))


def _too_small(limit_bytes: int, volume_bytes: int, buffer_bytes: int) -> str:
    takers = ((volume_bytes, "in memory volumes"), (buffer_bytes, "of buffers"))
    sizes = (f"{format_size(size_bytes)} {kind}" for size_bytes, kind in takers if size_bytes)
    return f"memory limit {format_size(limit_bytes)} for {' and '.join(sizes)}"


def _memory_volume_bytes(pod: Pod, container: Container) -> int:
    folders = (pod.volume(mount.volume).at("emptyDir") for mount in container.mounts)
    in_memory = (folder for folder in folders if folder.at("medium").text == "Memory")
    return sum(quantity_bytes(folder.at("sizeLimit").text) or 0 for folder in in_memory)


def _largest_buffers(pod: Pod, container: Container, manifest: Manifest) -> int:
    """Bytes that the distributor takes in this container, which a launcher elsewhere may start."""
    runs_here = container.script.commands
    launcher = manifest.launcher_of(pod)
    is_rank = launcher is not pod and not container.is_init
    elsewhere = [c for other in launcher.containers for c in other.script.commands] if is_rank else []
    # A launcher's own container holds no buffers: its ranks run in the workers.
    if pod.kind == "MPIJob" and pod.role == "Launcher" and manifest.worker_of(pod) is not pod:
        return 0
    return max((_buffers(command) for command in (*runs_here, *elsewhere)), default=0)


def _buffers(command: Command) -> int:
    if command.runs("azcp-cluster"):
        chunk, depth = command.option("--bcast-chunk"), command.option("--bcast-pipeline")
        is_number = depth is not None and depth.text.isascii() and depth.text.isdigit()
        lanes = int(depth.text[:6]) if depth and is_number else 1
        return (size_bytes(chunk.text) or 0) * lanes if chunk else 0
    if command.runs("azcp-launch", "azcp-distribute"):
        memory = command.option("--memory")
        return (size_bytes(memory.text) or 0) if memory else 0
    return 0


POD_RULES: Final = (ipc_lock, device, device_resources, shared_memory, memory_volumes, memory_limit)
