"""The RDMA devices of this node, as the kernel shows them in sysfs and as this process may open them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azcp_runtime.source.names import shown

_CLASS: Final = "class/infiniband"
_NO_GID: Final = "0000:0000:0000:0000:0000:0000:0000:0000"
_IPV4: Final = "0000:0000:0000:0000:0000:ffff:"
"""How the GID of an IPv4 address begins."""

_ACTIVE: Final = "ACTIVE"
_INFINIBAND: Final = "InfiniBand"
_ROCE: Final = "RoCE v2"
_NETVSC: Final = "hv_netvsc"
"""Hyper-V's own network driver: an Ethernet function below it is the VM's accelerated front network,
which offers RoCE to the kernel but does not carry it between VMs."""


@dataclass(frozen=True, slots=True)
class Port:
    """One port.

    Attributes:
        name: as UCX_NET_DEVICES has it, mlx5_ib0:1.
        state: ACTIVE, DOWN, ...
        link_layer: InfiniBand or Ethernet.
        rate: as the kernel says it, 400 Gb/sec (4X NDR).
        roce_index: the first RoCE v2 entry of its GID table; None where there is none.
        ipv4_index: the first of them that stands for an IPv4 address, which every switch can route.
    """

    name: str
    state: str
    link_layer: str
    rate: str
    roce_index: int | None
    ipv4_index: int | None = None


@dataclass(frozen=True, slots=True)
class Device:
    """One HCA, or one function of a network card.

    Attributes:
        name: mlx5_ib0.
        driver: mlx5_core.
        numa_node: -1 where the kernel does not say.
        is_front_network: it is the VM's accelerated network.
        refusal: why this process cannot open its verbs device; empty where it can.
        ports: its ports.
    """

    name: str
    driver: str
    numa_node: int
    is_front_network: bool
    refusal: str
    ports: tuple[Port, ...]


@dataclass(frozen=True, slots=True)
class Devices:
    """All of them, and whether /dev/infiniband is there."""

    has_folder: bool
    devices: tuple[Device, ...]

    def usable(self) -> list[Port]:
        """Ports that carry data between nodes: InfiniBand where there is any, else RoCE v2."""
        active = [
            port
            for device in self.devices
            if not device.is_front_network
            for port in device.ports
            if port.state == _ACTIVE
        ]
        infiniband = [port for port in active if port.link_layer == _INFINIBAND]
        return infiniband or [port for port in active if port.roce_index is not None]

    def down(self) -> list[Port]:
        """InfiniBand ports that are not active."""
        return [
            port
            for device in self.devices
            for port in device.ports
            if port.link_layer == _INFINIBAND and port.state != _ACTIVE
        ]


def read_devices(sys_root: Path = Path("/sys"), dev_root: Path = Path("/dev")) -> Devices:
    """What the kernel shows.

    Args:
        sys_root: where sysfs is mounted.
        dev_root: where device files are.
    """
    folder = dev_root / "infiniband"
    verbs = _verbs_names(sys_root / "class" / "infiniband_verbs")
    devices = [_read_device(sys_root / _CLASS / name, verbs, folder) for name in _entries(sys_root / _CLASS)]
    return Devices(folder.is_dir(), tuple(devices))


def _read_device(path: Path, verbs: dict[str, str], folder: Path) -> Device:
    numa = _text(path / "device" / "numa_node")
    ports = sorted((name for name in _entries(path / "ports") if name.isdigit()), key=int)
    return Device(
        name=shown(os.fsencode(path.name)),
        driver=shown(os.fsencode((path / "device" / "driver").resolve().name)),
        numa_node=int(numa) if numa.isdigit() else -1,
        is_front_network=_is_front_network(path / "device" / "net"),
        refusal=_refusal(verbs.get(path.name), folder),
        ports=tuple(_read_port(path, name) for name in ports),
    )


def _read_port(device: Path, number: str) -> Port:
    path = device / "ports" / number
    roce = _roce_gids(path)
    return Port(
        name=shown(os.fsencode(f"{device.name}:{number}")),
        state=_text(path / "state").rpartition(" ")[2],  # "4: ACTIVE"
        link_layer=_text(path / "link_layer"),
        rate=_text(path / "rate"),
        roce_index=next(iter(roce), None),
        ipv4_index=next((index for index, gid in roce.items() if gid.startswith(_IPV4)), None),
    )


def _roce_gids(port: Path) -> dict[int, str]:
    """The RoCE v2 entries of a port's GID table by index, in order."""
    types = port / "gid_attrs" / "types"
    indices = sorted(int(name) for name in _entries(types) if name.isdigit())
    # The kernel answers EINVAL for an entry that is not in use.
    found = {index: _text(port / "gids" / str(index)) for index in indices if _is_roce(types / str(index))}
    return {index: gid for index, gid in found.items() if gid not in ("", _NO_GID)}


def _is_roce(entry: Path) -> bool:
    return _text(entry) == _ROCE


def _is_front_network(net: Path) -> bool:
    return any(
        (net / name / "master" / "device" / "driver").resolve().name == _NETVSC for name in _entries(net)
    )


def _verbs_names(folder: Path) -> dict[str, str]:
    """uverbs0 by the name of its device."""
    return {_text(folder / name / "ibdev"): name for name in _entries(folder)}


def _refusal(verbs_name: str | None, folder: Path) -> str:
    if verbs_name is None:
        return "the kernel has no verbs device for it (module ib_uverbs)"
    try:
        # The mode bits do not tell what a device cgroup forbids.
        os.close(os.open(folder / verbs_name, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"{folder / shown(os.fsencode(verbs_name))}: {error.strerror}"
    return ""


def _entries(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:  # no such class on this machine
        return []


def _text(path: Path) -> str:
    try:
        return shown(path.read_bytes().strip())
    except OSError:  # not there, or an entry that is not in use
        return ""
