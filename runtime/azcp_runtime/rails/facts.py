"""What a node has for its rails: HCAs, network interfaces, NUMA nodes, CPUs."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azcp_runtime.machine import allowed_cpus
from azcp_runtime.rails.devices import Device, Devices, Port, read_devices
from azcp_runtime.rails.topology import read_numa_cpus, read_numa_node

_ETHERNET: Final = "Ethernet"


@dataclass(frozen=True, slots=True)
class Outlet:
    """Where a rail can send: the port of an HCA, or a network interface.

    Attributes:
        name: as UCX_NET_DEVICES has it, mlx5_ib0:1 or eth1.
        link: what it is, for people to read.
        numa_node: -1 where the kernel does not say.
        gid_index: the entry of a RoCE port's GID table that stands for an IPv4 address.
        is_interface: it is no HCA.
    """

    name: str
    link: str
    numa_node: int
    gid_index: int | None = None
    is_interface: bool = False


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What was read on one node.

    Attributes:
        devices: its RDMA devices.
        interfaces: the NUMA node of each network interface.
        numa_cpus: the CPUs of each NUMA node.
        allowed: the CPUs that its ranks may run on.
    """

    devices: Devices
    interfaces: Mapping[str, int]
    numa_cpus: Mapping[int, frozenset[int]]
    allowed: frozenset[int]

    def hcas(self) -> list[Outlet]:
        """The first usable port of each HCA that this process may open, in the order of their numbers."""
        usable = {port.name for port in self.devices.usable()}
        found = []
        for device in self.devices.devices:
            ports = [port for port in device.ports if port.name in usable]
            if ports and not device.refusal:
                found.append(_outlet(device, ports[0]))
        return sorted(found, key=lambda outlet: _numbered(outlet.name))

    def front_numa_node(self) -> int:
        """The NUMA node of the network that reaches the account, where that is known; else -1."""
        return next((d.numa_node for d in self.devices.devices if d.is_front_network), -1)

    def named(self, name: str) -> Outlet | None:
        """The outlet that the user calls so, with or without the number of its port."""
        for device in self.devices.devices:
            for port in device.ports:
                if name in (port.name, device.name):
                    return _outlet(device, port)
        if name in self.interfaces:
            return Outlet(name, "network interface", self.interfaces[name], is_interface=True)
        return None


def read_facts(sys_root: Path = Path("/sys"), dev_root: Path = Path("/dev")) -> NodeFacts:
    """What this node has.

    Args:
        sys_root: where sysfs is mounted.
        dev_root: where device files are.
    """
    # Of our own network namespace, whatever /sys was mounted in.
    names = [name for _, name in socket.if_nameindex()]
    return NodeFacts(
        read_devices(sys_root, dev_root),
        {name: read_numa_node(name, sys_root) for name in names},
        read_numa_cpus(sys_root),
        allowed_cpus(),
    )


def _outlet(device: Device, port: Port) -> Outlet:
    is_roce = port.link_layer == _ETHERNET
    link = f"{'RoCE' if is_roce else port.link_layer} {port.rate}".strip()
    return Outlet(port.name, link, device.numa_node, port.ipv4_index if is_roce else None)


def _numbered(name: str) -> list[tuple[bool, int, str]]:
    """A key that puts mlx5_ib10 after mlx5_ib9."""
    parts = re.findall(r"\d+|\D+", name)
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]
