"""Which HCA and which CPUs each rank of a node gets, from the sysfs of nodes that are made here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from azcp_runtime.contract import UsageError
from azcp_runtime.rails.bind import bind_rank
from azcp_runtime.rails.choose import Binding, choose, count_rails, settings
from azcp_runtime.rails.facts import NodeFacts, Outlet, read_facts
from azcp_runtime.rails.place import LocalPlace, local_place
from azcp_runtime.rails.topology import parse_cpus, written_cpus
from azcp_runtime.rails.wish import RailWish, parse_devices, parse_gid_index, parse_rail_cpus, wish_of

from tests.lab.sysfs import NO_GID, FakeNode

IPV6_GID = "fe80:0000:0000:0000:0015:5dff:fe33:ff01"
IPV4_GID = "0000:0000:0000:0000:0000:ffff:0a4e:0001"
FOUND = RailWish()


@pytest.fixture
def node(tmp_path: Path) -> FakeNode:
    return FakeNode(tmp_path / "sys", tmp_path / "dev")


def facts_of(node: FakeNode, cpus: str = "0-95") -> NodeFacts:
    return replace(read_facts(node.sys_root, node.dev_root), allowed=parse_cpus(cpus))


def h100(node: FakeNode) -> NodeFacts:
    """Eight HCAs on two NUMA nodes, the front network at the second."""
    for number in range(8):
        node.add_device(f"mlx5_ib{number}", numa_node=number // 4)
    node.add_device("mlx5_an0", link_layer="Ethernet", numa_node=1, is_front_network=True)
    node.add_cpus(0, "0-47")
    node.add_cpus(1, "48-95")
    return facts_of(node)


def chosen(facts: NodeFacts, rails: int, wish: RailWish = FOUND) -> list[Binding]:
    return [choose(facts, wish, rail, rails) for rail in range(rails)]


def names(bindings: list[Binding]) -> list[str]:
    return [binding.outlet.name if binding.outlet else "" for binding in bindings]


def test_eight_ranks_get_an_hca_each_and_the_cpus_near_to_it(node: FakeNode) -> None:
    bindings = chosen(h100(node), 8)
    assert names(bindings) == [f"mlx5_ib{number}:1" for number in range(8)]
    assert [written_cpus(binding.cpus) for binding in bindings] == ["0-47"] * 4 + ["48-95"] * 4
    assert {binding.trouble for binding in bindings} == {""}


def test_fewer_ranks_are_spread_over_the_numa_nodes(node: FakeNode) -> None:
    facts = h100(node)
    assert names(chosen(facts, 2)) == ["mlx5_ib0:1", "mlx5_ib4:1"]
    assert names(chosen(facts, 4)) == ["mlx5_ib0:1", "mlx5_ib1:1", "mlx5_ib4:1", "mlx5_ib5:1"]


def test_a_single_rank_is_where_the_front_network_is(node: FakeNode) -> None:
    (binding,) = chosen(h100(node), 1)
    assert names([binding]) == ["mlx5_ib4:1"]
    assert written_cpus(binding.cpus) == "48-95"


def test_only_active_ports_of_devices_that_can_be_opened_carry_a_rail(node: FakeNode) -> None:
    node.add_device("mlx5_ib0", state="1: DOWN")
    node.add_device("mlx5_ib1", has_file=False)
    node.add_device("mlx5_ib2")
    node.add_device("mlx5_ib10")
    node.add_device("mlx5_an0", link_layer="Ethernet", gids=((IPV4_GID, "RoCE v2"),), is_front_network=True)
    facts = facts_of(node)
    assert [outlet.name for outlet in facts.hcas()] == ["mlx5_ib2:1", "mlx5_ib10:1"]
    assert count_rails(facts) == (2, "2 HCAs")
    assert chosen(facts, 3)[0].trouble == "2 HCAs that can be used"


def test_infiniband_needs_no_gid(node: FakeNode) -> None:
    node.add_device("mlx5_ib0", gids=((IPV4_GID, "RoCE v2"),))
    facts = facts_of(node)
    assert facts.hcas()[0].link.startswith("InfiniBand")
    assert settings(chosen(facts, 1)[0]) == {"UCX_NET_DEVICES": "mlx5_ib0:1"}


def test_roce_takes_the_entry_of_its_ipv4_address(node: FakeNode) -> None:
    gids = ((IPV6_GID, "IB/RoCE v1"), (IPV6_GID, "RoCE v2"), (IPV4_GID, "IB/RoCE v1"), (IPV4_GID, "RoCE v2"))
    node.add_device("mlx5_0", link_layer="Ethernet", gids=gids)
    facts = facts_of(node)
    assert settings(chosen(facts, 1)[0]) == {"UCX_NET_DEVICES": "mlx5_0:1", "UCX_IB_GID_INDEX": "3"}
    assert facts.hcas()[0].link.startswith("RoCE")


def test_roce_without_an_ipv4_address_is_left_to_ucx(node: FakeNode) -> None:
    node.add_device("mlx5_0", link_layer="Ethernet", gids=((IPV6_GID, "RoCE v2"), (NO_GID, "RoCE v2")))
    assert settings(chosen(facts_of(node), 1)[0]) == {"UCX_NET_DEVICES": "mlx5_0:1"}


@pytest.mark.parametrize(("said", "told"), [(7, "7"), ("none", None)])
def test_the_gid_can_be_said(node: FakeNode, said: int | str, told: str | None) -> None:
    node.add_device("mlx5_0", link_layer="Ethernet", gids=((IPV4_GID, "RoCE v2"),))
    wish = RailWish(gid_index=parse_gid_index(str(said)))
    assert settings(chosen(facts_of(node), 1, wish)[0]).get("UCX_IB_GID_INDEX") == told


def test_pinning_keeps_to_what_the_group_allows(node: FakeNode) -> None:
    h100(node)
    assert written_cpus(choose(facts_of(node, "40-55"), FOUND, 0, 8).cpus) == "40-47"
    assert choose(facts_of(node, "48-95"), FOUND, 0, 8).cpus == frozenset()


def test_the_kernel_may_not_say_where_a_device_is(node: FakeNode) -> None:
    node.add_device("mlx5_ib0", numa_node=-1)
    node.add_cpus(0, "0-95")
    assert chosen(facts_of(node), 1)[0].cpus == frozenset()


def test_devices_and_cpus_can_be_said(node: FakeNode) -> None:
    wish = RailWish(parse_devices("mlx5_ib7, mlx5_ib0:1"), parse_rail_cpus("0-3/48"))
    bindings = chosen(h100(node), 2, wish)
    assert names(bindings) == ["mlx5_ib7:1", "mlx5_ib0:1"]
    assert [written_cpus(binding.cpus) for binding in bindings] == ["0-3", "48"]


def test_pinning_can_be_left_out(node: FakeNode) -> None:
    wish = RailWish(cpus=parse_rail_cpus("none"))
    assert [binding.cpus for binding in chosen(h100(node), 2, wish)] == [frozenset()] * 2


@pytest.mark.parametrize(
    ("wish", "trouble"),
    [
        (RailWish(devices=("mlx5_ib0", "mlx5_ib9")), "no mlx5_ib9"),
        (RailWish(devices=("mlx5_ib0",)), "2 rails, but 1 devices for them"),
        (RailWish(cpus=((0,), (1,), (2,))), "2 rails, but 3 lists of CPUs for them"),
        (RailWish(cpus=((0,), (200,))), "CPUs 200 are not allowed here"),
    ],
)
def test_what_is_said_must_be_there(node: FakeNode, wish: RailWish, trouble: str) -> None:
    assert chosen(h100(node), 2, wish)[1].trouble == trouble


def test_an_interface_of_the_network_can_be_a_rail(node: FakeNode) -> None:
    binding = chosen(facts_of(node), 1, RailWish(devices=("lo",)))[0]
    assert settings(binding) == {"UCX_NET_DEVICES": "lo", "OMPI_MCA_btl_tcp_if_include": "lo"}


def test_a_node_without_hcas_leaves_the_device_to_mpi(node: FakeNode) -> None:
    assert settings(chosen(facts_of(node), 2)[1]) == {}
    assert count_rails(facts_of(node)) == (1, "no HCA that can be used")


def test_ranks_that_have_no_cpus_are_no_gain(node: FakeNode) -> None:
    h100(node)
    assert count_rails(facts_of(node, "0-5")) == (3, "8 HCAs, but 6 CPUs")


@pytest.mark.parametrize(
    ("env", "place"),
    [
        ({"OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, LocalPlace(1, 2)),
        ({"SLURM_LOCALID": "3", "SLURM_STEP_TASKS_PER_NODE": "4(x16)"}, LocalPlace(3, 4)),
        ({"SLURM_LOCALID": "0", "SLURM_STEP_TASKS_PER_NODE": "2,1"}, None),
        ({"PMIX_RANK": "1"}, None),
        (
            {
                "OMPI_COMM_WORLD_LOCAL_RANK": "3",
                "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
                "AZCP_SIMULATE_NODES": "2",
            },
            LocalPlace(1, 2),
        ),
    ],
)
def test_the_launcher_says_which_rank_of_its_node_this_is(
    env: dict[str, str], place: LocalPlace | None
) -> None:
    assert local_place(env) == place


@pytest.fixture
def affinity() -> Iterator[frozenset[int]]:
    allowed = frozenset(os.sched_getaffinity(0))
    yield allowed
    os.sched_setaffinity(0, allowed)


SECOND = {"OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}


def test_a_rank_is_bound_before_mpi_starts(node: FakeNode, affinity: frozenset[int]) -> None:
    node.add_device("mlx5_ib0", numa_node=0)
    node.add_device("mlx5_ib1", numa_node=1)
    last = max(affinity)
    node.add_cpus(1, str(last))
    env = dict(SECOND)
    bind_rank(FOUND, env, lambda: facts_of(node, written_cpus(affinity)))
    assert env["UCX_NET_DEVICES"] == "mlx5_ib1:1"
    assert os.sched_getaffinity(0) == {last}


def test_what_the_user_has_set_for_ucx_stays(node: FakeNode) -> None:
    h100(node)
    env = {**SECOND, "UCX_NET_DEVICES": "mlx5_ib3:1"}
    bind_rank(RailWish(cpus=()), env, lambda: facts_of(node))
    assert env["UCX_NET_DEVICES"] == "mlx5_ib3:1"
    bind_rank(RailWish(devices=("mlx5_ib1", "mlx5_ib2"), cpus=()), env, lambda: facts_of(node))
    assert env["UCX_NET_DEVICES"] == "mlx5_ib2:1"


def test_an_interface_takes_the_place_of_those_that_are_left_out(node: FakeNode) -> None:
    env = {**SECOND, "OMPI_MCA_btl_tcp_if_exclude": "127.0.0.1/8,docker0"}
    bind_rank(RailWish(devices=("lo", "lo")), env, lambda: facts_of(node))
    assert env["OMPI_MCA_btl_tcp_if_include"] == "lo"
    assert "OMPI_MCA_btl_tcp_if_exclude" not in env


def test_a_rank_without_a_place_is_not_bound(node: FakeNode) -> None:
    env: dict[str, str] = {}
    binding = bind_rank(FOUND, env, lambda: h100(node))
    assert "which of its ranks" in binding.trouble
    assert env == {}


def test_the_environment_says_what_the_command_line_does_not() -> None:
    env = {"AZCP_RAIL_DEVICES": "eth1,eth2", "AZCP_RAIL_CPUS": "0/1", "AZCP_RAIL_GID_INDEX": "3"}
    assert wish_of(FOUND, env) == RailWish(("eth1", "eth2"), ((0,), (1,)), 3)
    said = RailWish(("eth3",), (), "none")
    assert wish_of(said, env) == said


@pytest.mark.parametrize(
    "env",
    [
        {"AZCP_RAIL_DEVICES": "eth1,,eth2"},
        {"AZCP_RAIL_DEVICES": "../eth1"},
        {"AZCP_RAIL_CPUS": "3-1"},
        {"AZCP_RAIL_CPUS": "0-99999999"},
        {"AZCP_RAIL_CPUS": "0/"},
        {"AZCP_RAIL_GID_INDEX": "256"},
    ],
)
def test_a_wrong_variable_is_refused(env: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="AZCP_RAIL_"):
        wish_of(FOUND, env)


@pytest.mark.parametrize("text", ["0", "0-3", "0,2-4,96"])
def test_a_list_of_cpus_is_written_as_it_is_read(text: str) -> None:
    assert written_cpus(parse_cpus(text)) == text


def test_an_outlet_is_named_with_or_without_its_port(node: FakeNode) -> None:
    node.add_device("mlx5_ib0")
    facts = facts_of(node)
    assert facts.named("mlx5_ib0") == facts.named("mlx5_ib0:1")
    assert facts.named("mlx5_ib0:2") is None
    assert isinstance(facts.named("lo"), Outlet)
