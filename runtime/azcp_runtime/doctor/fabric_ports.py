"""Whether the RDMA devices of this node can be used, and which GID and which names fit them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from azcp_runtime.doctor.check import Check, Status, few, ok, warn, without_rdma
from azcp_runtime.rails.devices import Device, Devices
from azcp_runtime.source.names import shown

_NAME: Final = "verbs devices"
_MOUNT: Final = (
    "give the container /dev/infiniband: --device (Docker), the rdma/ib resource (Kubernetes), "
    "--container-mounts=/dev/infiniband:/dev/infiniband (pyxis), --bind (Apptainer)"
)


def check_devices(facts: Devices, *, is_required: bool) -> Check:
    """Whether there is a port that carries RDMA, and this process may open it."""
    trouble = _trouble(facts)
    if trouble:
        return without_rdma(_NAME, *trouble, is_required=is_required)
    usable, down = facts.usable(), facts.down()
    if down:
        return warn(
            _NAME,
            f"{len(usable)} ports active, not {few([f'{port.name} ({port.state})' for port in down])}",
            "a rail is missing: look at the link, or drain the node",
        )
    numa = {device.name: device.numa_node for device in facts.devices}
    ports = [f"{port.name} (NUMA {numa[port.name.rpartition(':')[0]]})" for port in usable]
    rates = few(sorted({port.rate for port in usable}))
    return ok(_NAME, f"{usable[0].link_layer}, {rates}: {few(ports)}")


def check_gids(facts: Devices, env: Mapping[str, str]) -> Iterable[Check]:
    """Which entry of the GID table fits, and whether the environment says another; nothing without ports."""
    usable = facts.usable()
    if not usable:
        return
    name, setting = "GID table", env.get("UCX_IB_GID_INDEX", "auto")
    said = f"UCX_IB_GID_INDEX={shown(setting.encode('utf-8', 'surrogateescape'))}"
    indices = sorted({port.roce_index for port in usable if port.roce_index is not None})
    if usable[0].link_layer == "InfiniBand":
        if setting not in ("auto", "0"):
            yield warn(name, f"{said} on InfiniBand", "unset it: an index is for RoCE alone")
        else:
            yield ok(name, "InfiniBand, no index needed")
    elif setting != "auto" and (not setting.isdigit() or int(setting) not in indices):
        yield warn(
            name, f"{said}, RoCE v2 is at {few([str(index) for index in indices])}", "unset it: UCX finds it"
        )
    else:
        yield ok(name, f"RoCE v2 at {few([str(index) for index in indices])}")


def check_named_devices(facts: Devices, interfaces: Iterable[str], env: Mapping[str, str]) -> Iterable[Check]:
    """Whether UCX_NET_DEVICES names what is here; nothing where it is not set."""
    setting = env.get("UCX_NET_DEVICES", "all")
    if setting in ("", "all") or setting.startswith("^"):
        return
    here = {port.name for device in facts.devices for port in device.ports} | set(interfaces)
    # UCX takes a device without its port, too.
    here |= {device.name for device in facts.devices}
    named = [shown(word.strip().encode("utf-8", "surrogateescape")) for word in setting.split(",")]
    missing = [name for name in named if name not in here and "*" not in name]
    good = few([port.name for port in facts.usable()])
    if missing:
        # With none of them there UCX has nothing to send with, and MPI does not come up.
        status = Status.FAIL if missing == named else Status.WARN
        remedy = f"unset it, or name {good}" if good else "unset it"
        yield Check("UCX_NET_DEVICES", status, f"names {few(missing)}, which this node has not", remedy)
    else:
        yield ok("UCX_NET_DEVICES", few(named))


def _trouble(facts: Devices) -> tuple[str, str] | None:
    """What keeps RDMA away, and what to do; None where nothing does."""
    if not facts.devices:
        return _no_devices(has_folder=facts.has_folder)
    usable = {port.name.rpartition(":")[0] for port in facts.usable()}
    if not usable:
        return f"no port carries RDMA: {few([_described(device) for device in facts.devices])}", (
            "take a VM size with InfiniBand; where it has, look at the links and the driver"
        )
    if not facts.has_folder:
        return f"{few(sorted(usable))} are there, /dev/infiniband is not", _MOUNT
    refusals = [device.refusal for device in facts.devices if device.name in usable and device.refusal]
    if refusals:
        return f"cannot be opened: {few(refusals, 4)}", _MOUNT
    return None


def _no_devices(*, has_folder: bool) -> tuple[str, str]:
    if has_folder:
        return "/dev/infiniband is there, the kernel shows no device", (
            "a network namespace hides them: `rdma system set netns shared` on the node, or use the host's"
        )
    return (
        "no RDMA device",
        "take a VM size with InfiniBand, and its driver on the node; " + _MOUNT,
    )


def _described(device: Device) -> str:
    if device.is_front_network:
        return f"{device.name} is the accelerated front network"
    states = few([f"{port.link_layer} {port.state}" for port in device.ports], 2)
    is_plain = all(port.link_layer == "Ethernet" and port.roce_index is None for port in device.ports)
    return f"{device.name} is {'plain ' if is_plain else ''}{states}"
