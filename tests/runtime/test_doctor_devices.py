"""What azcp-doctor says of RDMA devices, their ports, GIDs and files."""

from __future__ import annotations

from pathlib import Path

import pytest
from azcp_runtime.doctor.check import Check, Status
from azcp_runtime.doctor.fabric_ports import check_devices, check_gids, check_named_devices
from azcp_runtime.rails.devices import read_devices

from tests.lab.sysfs import A_GID, NO_GID, FakeNode

ROCE = ((A_GID, "IB/RoCE v1"), (NO_GID, "RoCE v2"), (A_GID, "IB/RoCE v1"), (A_GID, "RoCE v2"))


@pytest.fixture
def node(tmp_path: Path) -> FakeNode:
    """One without devices."""
    return FakeNode(tmp_path / "sys", tmp_path / "dev")


def devices_check(node: FakeNode, *, is_required: bool = True) -> Check:
    return check_devices(read_devices(node.sys_root, node.dev_root), is_required=is_required)


def gid_checks(node: FakeNode, **env: str) -> list[Check]:
    return list(check_gids(read_devices(node.sys_root, node.dev_root), env))


def named_checks(node: FakeNode, setting: str) -> list[Check]:
    facts = read_devices(node.sys_root, node.dev_root)
    return list(check_named_devices(facts, ["eth0", "lo"], {"UCX_NET_DEVICES": setting}))


def test_active_infiniband_ports_are_good(node: FakeNode) -> None:
    node.add_device("mlx5_ib0", numa_node=0)
    node.add_device("mlx5_ib1", numa_node=1)
    check = devices_check(node)
    assert check.status is Status.OK
    assert check.found == "InfiniBand, 400 Gb/sec (4X NDR): mlx5_ib0:1 (NUMA 0), mlx5_ib1:1 (NUMA 1)"


def test_no_device_warns_and_fails_where_rdma_is_required(node: FakeNode) -> None:
    assert devices_check(node, is_required=False).status is Status.WARN
    assert devices_check(node).status is Status.FAIL


def test_devices_without_their_files_say_that_the_mount_is_missing(node: FakeNode) -> None:
    node.add_device("mlx5_ib0", has_file=False)
    check = devices_check(node)
    assert check.status is Status.FAIL
    assert check.found == "mlx5_ib0 are there, /dev/infiniband is not"
    assert "rdma/ib" in check.remedy
    assert "--container-mounts" in check.remedy


def test_a_device_file_that_cannot_be_opened_is_named_with_the_reason(node: FakeNode) -> None:
    node.add_device("mlx5_ib0", has_file=False)
    node.add_device("mlx5_ib1")
    check = devices_check(node)
    assert check.status is Status.FAIL
    assert check.found.endswith("infiniband/uverbs0: No such file or directory")


def test_files_without_devices_say_that_a_namespace_hides_them(node: FakeNode) -> None:
    (node.dev_root / "infiniband").mkdir(parents=True)
    assert "rdma system set netns shared" in devices_check(node).remedy


def test_a_port_that_is_down_is_a_missing_rail(node: FakeNode) -> None:
    node.add_device("mlx5_ib0")
    node.add_device("mlx5_ib1", state="1: DOWN")
    check = devices_check(node)
    assert check.status is Status.WARN
    assert check.found == "1 ports active, not mlx5_ib1:1 (DOWN)"


def test_the_front_network_is_no_fabric_although_it_has_roce_gids(node: FakeNode) -> None:
    node.add_device("mlx5_an0", link_layer="Ethernet", gids=ROCE, is_front_network=True)
    check = devices_check(node)
    assert check.status is Status.FAIL
    assert "mlx5_an0 is the accelerated front network" in check.found


def test_an_ethernet_function_without_roce_is_no_fabric(node: FakeNode) -> None:
    node.add_device("mlx5_0", link_layer="Ethernet", gids=((NO_GID, "RoCE v2"),))
    assert "mlx5_0 is plain Ethernet ACTIVE" in devices_check(node).found


def test_infiniband_is_taken_where_both_are_there(node: FakeNode) -> None:
    node.add_device("mlx5_an0", link_layer="Ethernet", gids=ROCE)
    node.add_device("mlx5_ib0")
    assert [port.name for port in read_devices(node.sys_root, node.dev_root).usable()] == ["mlx5_ib0:1"]
    assert gid_checks(node)[0].found == "InfiniBand, no index needed"


def test_the_first_roce_v2_entry_that_is_in_use_is_the_gid(node: FakeNode) -> None:
    node.add_device("mlx5_0", link_layer="Ethernet", gids=ROCE)
    assert devices_check(node).status is Status.OK
    (check,) = gid_checks(node)
    assert (check.status, check.found) == (Status.OK, "RoCE v2 at 3")


def test_a_gid_index_that_fits_no_port_is_warned_of(node: FakeNode) -> None:
    node.add_device("mlx5_0", link_layer="Ethernet", gids=ROCE)
    assert gid_checks(node, UCX_IB_GID_INDEX="3")[0].status is Status.OK
    assert gid_checks(node, UCX_IB_GID_INDEX="1")[0].status is Status.WARN


def test_a_gid_index_is_out_of_place_on_infiniband(node: FakeNode) -> None:
    node.add_device("mlx5_ib0")
    assert gid_checks(node, UCX_IB_GID_INDEX="3")[0].remedy.startswith("unset it")


def test_without_a_port_nothing_is_said_of_gids(node: FakeNode) -> None:
    assert gid_checks(node) == []


def test_devices_that_the_environment_names_must_be_here(node: FakeNode) -> None:
    node.add_device("mlx5_ib0")
    assert named_checks(node, "all") == []
    assert named_checks(node, "mlx5_ib0:1,eth0")[0].status is Status.OK
    (partly,) = named_checks(node, "mlx5_ib0:1,mlx5_1:1")
    assert (partly.status, partly.found) == (Status.WARN, "names mlx5_1:1, which this node has not")
    (none,) = named_checks(node, "mlx5_0:1")
    assert (none.status, none.remedy) == (Status.FAIL, "unset it, or name mlx5_ib0:1")


def test_names_cannot_drive_the_terminal(node: FakeNode) -> None:
    node.add_device("mlx5\x1b[2J", link_layer="Ethernet\x1b]0;x", gids=())
    assert "\x1b" not in devices_check(node).found
    assert "\\x1b" in devices_check(node).found
    assert "\x1b" not in named_checks(node, "\x1b[1m")[0].found


def test_this_machine_can_be_read() -> None:
    facts = read_devices()
    assert all(device.name for device in facts.devices)
