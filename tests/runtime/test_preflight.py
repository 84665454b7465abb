"""The quick look that every run takes: what is asked of the fabric, and how it is said for many nodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from azcp_runtime.contract import ExitCode, UsageError
from azcp_runtime.doctor.check import Check, Status, fail, warn
from azcp_runtime.doctor.gather import NodeReport
from azcp_runtime.doctor.libraries import UcxAnswer, VerbsAnswer
from azcp_runtime.doctor.privileges import Privileges
from azcp_runtime.doctor.processor import read_processor
from azcp_runtime.doctor.shared_memory import SharedMemory
from azcp_runtime.options import parse_options
from azcp_runtime.preflight.node import Asked, QuickFacts, judge
from azcp_runtime.preflight.together import failures_as_error, sorted_out
from azcp_runtime.preflight.wish import Wish, fabric_wish
from azcp_runtime.rails.devices import Devices, read_devices

from tests.lab.sysfs import FakeNode

MIB = 1 << 20
PLAIN = Asked(
    require_rdma=False, allow_tcp=False, rail_devices=(), memory=None, rails=1, has_peers=True, dest=None
)
ROOT = Privileges(0, None, None, 0, 0, is_in_user_namespace=False)
VERBS = VerbsAnswer(("mlx5_ib0",), ("/usr/lib/libibverbs.so.1",), (), "", "")
RDMA = UcxAnswer("1.18.1", (("rc_mlx5", "mlx5_ib0:1"),), "")


@pytest.fixture
def hca(tmp_path: Path) -> Devices:
    """A node with one active HCA."""
    node = FakeNode(tmp_path / "sys", tmp_path / "dev")
    node.add_device("mlx5_ib0")
    return read_devices(node.sys_root, node.dev_root)


def found(
    devices: Devices, asked: Asked = PLAIN, pml: str = "ucx", ucx: UcxAnswer = RDMA, **env: str
) -> dict[str, Status]:
    """What is wrong, by the check's name."""
    wish = fabric_wish(
        devices, env, required=asked.require_rdma, allowed=asked.allow_tcp, named=asked.rail_devices
    )
    shm = SharedMemory(64 * MIB, 64 * MIB, is_writable=True)
    facts = QuickFacts(read_processor(), shm, ROOT, devices, ("eth0",), VERBS, ucx, pml)
    checks = judge(facts, asked, wish, env)
    return {check.name: check.status for check in checks if check.status is not Status.OK}


def test_nothing_is_said_where_rdma_carries_the_run(hca: Devices) -> None:
    assert found(hca) == {}
    assert found(hca, replace(PLAIN, require_rdma=True)) == {}


def test_tcp_beside_an_hca_is_a_warning_until_somebody_asks_for_rdma(hca: Devices) -> None:
    assert found(hca, pml="ob1") == {"transport": Status.WARN}
    for asked in (replace(PLAIN, require_rdma=True), replace(PLAIN, rail_devices=("mlx5_ib0:1",))):
        assert found(hca, asked, pml="ob1") == {"transport": Status.FAIL}
    assert found(hca, pml="ob1", UCX_NET_DEVICES="mlx5_ib0:1") == {"transport": Status.FAIL}
    assert found(hca, pml="ob1", UCX_TLS="rc,self") == {"transport": Status.FAIL}
    assert found(hca, pml="ob1", UCX_TLS="tcp,self") == {"transport": Status.WARN}
    assert found(hca, pml="ob1", UCX_TLS="^rc") == {"transport": Status.WARN}


def test_tcp_that_is_allowed_is_not_mentioned(hca: Devices) -> None:
    assert found(hca, replace(PLAIN, allow_tcp=True), pml="ob1", UCX_NET_DEVICES="mlx5_ib0:1") == {}


def test_tcp_is_all_there_is_on_a_node_without_hca() -> None:
    nothing = Devices(has_folder=False, devices=())
    assert found(nothing, pml="ob1", ucx=UcxAnswer("1.18.1", (), "")) == {}
    required = found(nothing, replace(PLAIN, require_rdma=True), pml="ob1", ucx=UcxAnswer("1.18.1", (), ""))
    assert required["verbs devices"] is Status.FAIL
    assert required["transport"] is Status.FAIL


def test_one_node_alone_has_no_fabric_to_judge(hca: Devices) -> None:
    assert found(hca, replace(PLAIN, has_peers=False), pml="") == {}


def test_shared_memory_counts_only_between_ranks_of_a_node(hca: Devices) -> None:
    assert found(hca, replace(PLAIN, rails=4)) == {"/dev/shm": Status.WARN}  # noqa: S108 - its name
    assert found(hca, replace(PLAIN, rails=16)) == {"/dev/shm": Status.FAIL}  # noqa: S108 - its name


def test_who_asked_for_rdma_is_named(hca: Devices) -> None:
    wish = fabric_wish(hca, {"UCX_TLS": "dc_x"}, required=False, allowed=False)
    assert wish == Wish(is_required=True, is_allowed=False, because="UCX_TLS names RDMA")


def reports(*checks: Check, count: int = 1024) -> list[NodeReport]:
    """The same on every node."""
    return [NodeReport(node, f"n{node}", checks) for node in range(count)]


def test_a_thousand_nodes_with_one_fault_are_one_line() -> None:
    warnings, failures = sorted_out(reports(warn("page size", "3 bytes", "do it")), 1024)
    assert (warnings, failures) == (["on all 1024 nodes: page size: 3 bytes; do it"], [])
    warnings, _ = sorted_out(reports(warn("page size", "3 bytes", "do it"), count=100), 1024)
    assert warnings == ["on n0, n1, n2, n3 ... (100): page size: 3 bytes; do it"]


def test_all_failures_are_in_one_error_with_their_remedies() -> None:
    both = [
        *reports(fail("memlock", "64 KiB", "raise it"), count=1),
        NodeReport(1, "n\x1b", (fail("x", "y", "z"),)),
    ]
    error = failures_as_error(sorted_out(both, 2)[1])
    assert str(error) == r"on n0: memlock: 64 KiB; raise it | on n\x1b: x: y; z"
    assert error.exit_code is ExitCode.PREFLIGHT


@pytest.mark.parametrize("other", ["--allow-tcp", "--no-broadcast"])
def test_rdma_cannot_be_required_of_what_has_none(other: str) -> None:
    with pytest.raises(UsageError, match="--require-rdma"):
        parse_options(["/source", "/dest", "--require-rdma", other])
