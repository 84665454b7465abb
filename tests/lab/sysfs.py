"""A sysfs with RDMA devices in it, and the folder of their device files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"
A_GID = "fe80:0000:0000:0000:0015:5dff:fe33:ff01"


@dataclass(frozen=True)
class FakeNode:
    """Both roots of one node."""

    sys_root: Path
    dev_root: Path

    def add_device(
        self,
        name: str,
        *,
        link_layer: str = "InfiniBand",
        state: str = "4: ACTIVE",
        numa_node: int = 0,
        gids: tuple[tuple[str, str], ...] = ((A_GID, "IB/RoCE v1"),),
        has_file: bool = True,
        is_front_network: bool = False,
    ) -> None:
        """An mlx5 device with one port, as the kernel shows it; gids are pairs of address and type."""
        device = self.sys_root / "class" / "infiniband" / name
        port = device / "ports" / "1"
        number = len(list(device.parent.glob("*")))
        _write(port / "state", state)
        _write(port / "link_layer", link_layer)
        _write(port / "rate", "400 Gb/sec (4X NDR)")
        _write(device / "device" / "numa_node", str(numa_node))
        _link(device / "device" / "driver", self.sys_root / "drivers" / "mlx5_core")
        for index, (address, kind) in enumerate(gids):
            _write(port / "gids" / str(index), address)
            _write(port / "gid_attrs" / "types" / str(index), kind)
        _write(self.sys_root / "class" / "infiniband_verbs" / f"uverbs{number}" / "ibdev", name)
        if has_file:
            _write(self.dev_root / "infiniband" / f"uverbs{number}", "")
        if is_front_network:
            _link(
                device / "device" / "net" / "eth1" / "master" / "device" / "driver",
                self.sys_root / "drivers" / "hv_netvsc",
            )

    def add_cpus(self, numa_node: int, cpus: str) -> None:
        """A NUMA node with these CPUs."""
        _write(self.sys_root / "devices" / "system" / "node" / f"node{numa_node}" / "cpulist", cpus)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def _link(path: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
