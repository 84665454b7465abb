"""The quick look that every run takes: what is asked of the fabric, and how it is said for many nodes."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from azcp_runtime.contract import ENV_SIMULATE_NODES, ExitCode, UsageError
from azcp_runtime.doctor.check import Check, Status, fail, warn
from azcp_runtime.doctor.gather import NodeReport
from azcp_runtime.doctor.libraries import UcxAnswer, VerbsAnswer
from azcp_runtime.doctor.privileges import Privileges
from azcp_runtime.doctor.processor import read_processor
from azcp_runtime.doctor.shared_memory import SharedMemory
from azcp_runtime.mpi.ranks import Seat
from azcp_runtime.options import parse_options
from azcp_runtime.preflight.asked import Asked, asked_of
from azcp_runtime.preflight.node import QuickFacts, judge
from azcp_runtime.preflight.together import failures_as_error, looked, sorted_out
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


def judged(
    devices: Devices, asked: Asked = PLAIN, pml: str = "ucx", ucx: UcxAnswer = RDMA, **env: str
) -> list[Check]:
    """What is wrong."""
    wish = fabric_wish(
        devices, env, required=asked.require_rdma, allowed=asked.allow_tcp, named=asked.rail_devices
    )
    shm = SharedMemory(64 * MIB, 64 * MIB, is_writable=True)
    facts = QuickFacts(read_processor(), shm, ROOT, devices, ("eth0",), VERBS, ucx, pml)
    return [check for check in judge(facts, asked, wish, env) if check.status is not Status.OK]


def found(
    devices: Devices, asked: Asked = PLAIN, pml: str = "ucx", ucx: UcxAnswer = RDMA, **env: str
) -> dict[str, Status]:
    """How bad each of it is, by the check's name."""
    return {check.name: check.status for check in judged(devices, asked, pml, ucx, **env)}


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
    assert found(hca, pml="ob1", UCX_TLS="rc,tcp,self") == {"transport": Status.WARN}
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
    assert found(hca, replace(PLAIN, rails=16)) == {"/dev/shm": Status.WARN}  # noqa: S108 - its name


def test_who_asked_for_rdma_is_named(hca: Devices) -> None:
    wish = fabric_wish(hca, {"UCX_TLS": "dc_x"}, required=False, allowed=False)
    assert wish == Wish(is_required=True, is_allowed=False, because="UCX_TLS names RDMA")


def test_a_setting_that_asks_for_rdma_is_told_once_and_the_option_not_at_every_check(hca: Devices) -> None:
    nothing = UcxAnswer("1.18.1", (), "")
    checks = judged(hca, pml="ob1", ucx=nothing, UCX_TLS="rc", UCX_NET_DEVICES="eth7")
    said = [check.found for check in checks]
    assert len(said) > 1
    assert "".join(said).count("(RDMA: UCX_TLS names RDMA)") == 1
    said = [check.found for check in judged(hca, replace(PLAIN, require_rdma=True), "ob1", nothing)]
    assert "(RDMA:" not in "".join(said)


def reports(*checks: Check, count: int = 1024) -> list[NodeReport]:
    """The same on every node."""
    return [NodeReport(node, f"n{node}", checks) for node in range(count)]


def test_a_thousand_nodes_with_one_fault_are_one_line() -> None:
    warnings, failures = sorted_out(reports(warn("page size", "3 bytes", "do it")), 1024)
    assert (warnings, failures) == (["on all 1024 nodes: page size: 3 bytes; do it"], [])
    warnings, _ = sorted_out(reports(warn("page size", "3 bytes", "do it"), count=100), 1024)
    assert warnings == ["on 100 of 1024 nodes (0-99; the first is n0): page size: 3 bytes; do it"]


def test_nodes_are_named_where_they_are_few_and_ranges_where_they_are_many() -> None:
    check = warn("page size", "3 bytes", "do it")
    some = [report for report in reports(check) if report.node in (1, 5, 6)]
    assert sorted_out(some, 1024)[0] == ["on n1, n5, n6: page size: 3 bytes; do it"]
    odd = [report for report in reports(check) if report.node % 2 or report.node < 4]
    (line,) = sorted_out(odd, 1024)[0]
    assert line.startswith("on 514 of 1024 nodes (0-3, 5, 7, 9 ... (511); the first is n0): page size")


def test_nodes_that_all_say_something_else_are_four_lines() -> None:
    every = [NodeReport(node, f"n{node}", (warn("disk", f"/dev/sd{node}", "do"),)) for node in range(1024)]
    lines, _ = sorted_out(every, 1024)
    assert lines[0] == "on n0: disk: /dev/sd0; do"
    assert len(lines) == 4
    assert "on 1021 of 1024 nodes (3-1023; the first is n3): disk: /dev/sd3, and 1020 things" in lines[3]


def test_all_failures_are_in_one_error_with_their_remedies() -> None:
    both = [
        *reports(fail("memlock", "64 KiB", "raise it"), count=1),
        NodeReport(1, "n\x1b", (fail("x", "y", "z"),)),
    ]
    error = failures_as_error(sorted_out(both, 2)[1], is_option=False)
    assert str(error).splitlines() == [
        "a setting asks for RDMA, which is not to be had",
        "  on n0: memlock: 64 KiB",
        "      -> raise it",
        r"  on n\x1b: x: y",
        "      -> z",
        "  --allow-tcp takes TCP all the same",
    ]
    assert error.exit_code is ExitCode.PREFLIGHT


def test_nodes_that_all_fail_alike_are_named_once_and_so_is_the_option() -> None:
    failing = reports(fail("devices", "none", "take some"), fail("transport", "TCP", "see it"), count=3)
    error = failures_as_error(sorted_out(failing, 3)[1], is_option=True)
    assert str(error).splitlines() == [
        "--require-rdma asks for RDMA, which is not to be had on all 3 nodes",
        "  devices: none",
        "      -> take some",
        "  transport: TCP",
        "      -> see it",
        "  drop --require-rdma to run on TCP",
    ]


def test_a_look_that_never_comes_back_is_a_finding_and_the_rank_stays_alive_meanwhile() -> None:
    over, signs = threading.Event(), []

    def hang() -> list[Check]:
        over.wait()
        return []

    (check,) = looked(hang, lambda: signs.append(1), PLAIN, patience_s=0.5)
    assert (check.status, check.found) == (
        Status.WARN,
        "this node cannot be looked at: no answer within 0.5 s",
    )
    assert len(signs) >= 2
    (check,) = looked(hang, lambda: None, replace(PLAIN, require_rdma=True), patience_s=0.0)
    assert check.status is Status.FAIL
    over.set()


@pytest.mark.parametrize(
    ("nodes", "env", "is_looked_at"),
    [
        (1, {}, False),
        (2, {}, True),
        (2, {ENV_SIMULATE_NODES: "2"}, False),
        (1, {"SLURM_JOB_ID": "7"}, True),
        (1, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, True),
    ],
)
def test_the_disk_of_somebodys_own_machine_is_not_blamed(
    nodes: int, env: dict[str, str], is_looked_at: bool
) -> None:
    seat = Seat(0, nodes, 0, nodes, 0, 1, ("n",) * nodes, tuple(range(nodes)))
    asked = asked_of(parse_options(["/source", "dest"]), seat, env)
    assert asked.dest == (Path("dest").absolute() if is_looked_at else None)


@pytest.mark.parametrize("error", [PermissionError(13, "no\x1b"), KeyError("CapEff"), ValueError("x")])
def test_a_kernel_that_shows_something_else_ends_no_run(error: Exception) -> None:
    def look() -> list[Check]:
        raise error

    (check,) = looked(look, lambda: None, PLAIN)
    assert check.status is Status.WARN
    assert type(error).__name__ in check.found
    assert "\x1b" not in check.found


def test_what_a_node_says_of_a_check_is_bounded() -> None:
    (check,) = looked(lambda: [warn("a", "x" * 5000, "y" * 5000)], lambda: None, PLAIN)
    assert (len(check.found), len(check.remedy)) == (400, 400)


def test_names_in_the_environment_that_are_not_here_end_no_run_that_has_come_up(hca: Devices) -> None:
    assert found(hca, UCX_NET_DEVICES="eth7") == {"UCX_NET_DEVICES": Status.WARN}
    required = replace(PLAIN, require_rdma=True)
    assert found(hca, required, UCX_NET_DEVICES="eth7") == {"UCX_NET_DEVICES": Status.FAIL}


@pytest.mark.parametrize("other", ["--allow-tcp", "--no-broadcast"])
def test_rdma_cannot_be_required_of_what_has_none(other: str) -> None:
    with pytest.raises(UsageError, match="--require-rdma"):
        parse_options(["/source", "/dest", "--require-rdma", other])
