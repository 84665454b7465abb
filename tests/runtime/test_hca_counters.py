"""The HCAs' own counters, as proof of what carried the doctor's trial."""

from __future__ import annotations

from pathlib import Path

import pytest
from azcp_runtime.doctor.check import Status
from azcp_runtime.preflight.counters import check_carrier, received_bytes
from azcp_runtime.rails.devices import read_devices

from tests.lab.sysfs import FakeNode

MIB = 1 << 20


def test_all_ports_that_carry_data_are_summed(tmp_path: Path) -> None:
    node = FakeNode(tmp_path / "sys", tmp_path / "dev")
    for name, words in (("mlx5_ib0", "1000"), ("mlx5_ib1", "24")):
        node.add_device(name)
        counters = node.sys_root / "class" / "infiniband" / name / "ports" / "1" / "counters"
        counters.mkdir()
        (counters / "port_rcv_data").write_text(f"{words}\n")
    node.add_device("mlx5_an0", is_front_network=True)
    devices = read_devices(node.sys_root, node.dev_root)
    assert received_bytes(devices, node.sys_root) == 4096
    (counters / "port_rcv_data").unlink()
    assert received_bytes(devices, node.sys_root) is None


def test_a_node_without_hca_counts_nothing(tmp_path: Path) -> None:
    devices = read_devices(tmp_path / "sys", tmp_path / "dev")
    assert received_bytes(devices, tmp_path) is None


@pytest.mark.parametrize(
    ("moved", "required", "status"),
    [
        (130 * MIB, True, Status.OK),
        (64 * MIB, True, Status.OK),
        (MIB, False, Status.WARN),
        (0, True, Status.FAIL),
    ],
)
def test_counters_that_stand_still_tell_of_tcp(moved: int, required: bool, status: Status) -> None:
    check = check_carrier(128 * MIB, 5, 5 + moved, is_required=required)
    assert check is not None
    assert check.status is status


@pytest.mark.parametrize(("before", "after", "got"), [(None, 9, MIB), (0, None, MIB), (9, 0, MIB), (0, 9, 0)])
def test_without_two_readings_in_order_nothing_is_claimed(
    before: int | None, after: int | None, got: int
) -> None:
    assert check_carrier(got, before, after, is_required=True) is None
