"""What is told of the rails of all nodes, and which differences between them are refused."""

from __future__ import annotations

import pytest
from azcp_runtime.contract import PreflightError, UsageError
from azcp_runtime.mpi.ranks import Seat
from azcp_runtime.options import parse_options
from azcp_runtime.rails.choose import Binding
from azcp_runtime.rails.facts import Outlet
from azcp_runtime.rails.survey import Answer, main, read_answers, settle
from azcp_runtime.rails.table import Row, check_count, row_of, table

RAILS = 2


def seat(nodes: int) -> Seat:
    hosts = tuple(f"n{node}" for node in range(nodes))
    node_of = tuple(node for node in range(nodes) for _ in range(RAILS))
    return Seat(0, nodes * RAILS, 0, nodes, 0, RAILS, hosts, node_of)


def row(rail: int, device: str = "mlx5_ib{}:1", trouble: str = "") -> Row:
    return Row(rail, device.format(rail), "InfiniBand", str(rail), f"{rail}-9", "-", trouble)


def node_rows(device: str = "mlx5_ib{}:1") -> list[Row]:
    return [row(rail, device) for rail in range(RAILS)]


def test_nodes_that_are_alike_are_told_once() -> None:
    lines = list(table(seat(6), node_rows() * 5 + node_rows("mlx5_{}:1")))
    assert [line.split() for line in lines if line[0] != " "] == [
        ["2", "rails", "on", "5", "nodes:", "n0,", "n1,", "n2,", "n3", "and", "1", "more"],
        ["2", "rails", "on", "1", "node:", "n5"],
    ]
    assert [line.split() for line in lines[1:4]] == [
        ["rail", "device", "link", "NUMA", "CPUs", "GID"],
        ["0", "mlx5_ib0:1", "InfiniBand", "0", "0-9", "-"],
        ["1", "mlx5_ib1:1", "InfiniBand", "1", "1-9", "-"],
    ]


def test_all_nodes_that_cannot_have_the_rails_are_named_with_the_reason() -> None:
    rows = [*node_rows(), row(0, trouble="1 HCA"), row(1, trouble="1 HCA"), row(0, trouble="no eth9"), row(1)]
    with pytest.raises(PreflightError, match="2 rails per node are not to be had: n1: 1 HCA; n2: no eth9"):
        list(table(seat(3), rows))


def test_a_node_without_hcas_among_others_with_them_is_named() -> None:
    with pytest.raises(PreflightError, match="no HCA that can be used on n1, though on the other nodes"):
        list(table(seat(3), [*node_rows(), *node_rows(""), *node_rows()]))


def test_nodes_without_any_hca_are_told_that_mpi_chooses() -> None:
    lines = list(table(seat(2), node_rows("") * 2))
    assert "as MPI finds" in lines[2]


def test_ranks_that_count_otherwise_than_their_launcher_are_refused() -> None:
    with pytest.raises(PreflightError, match="n0: its ranks are numbered in another order"):
        list(table(seat(1), list(reversed(node_rows()))))


def test_the_table_says_what_mpi_will_see() -> None:
    binding = Binding(0, Outlet("mlx5_ib0:1", "InfiniBand 400", 1), frozenset({0, 1}))
    assert row_of(binding, {}).cells() == ("0", "mlx5_ib0:1", "InfiniBand 400", "1", "0-1", "-")
    assert row_of(binding, {"UCX_NET_DEVICES": "all"}).cells()[1:3] == ("all", "UCX_NET_DEVICES")


def test_another_number_of_ranks_than_was_asked_for_is_refused() -> None:
    check_count(seat(1), 2)
    check_count(seat(1), "auto")
    with pytest.raises(UsageError, match="--rails 4, but each node has 2 ranks"):
        check_count(seat(1), 4)


def test_a_node_says_its_number_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main() == 0
    (answer,) = read_answers(f"noise\n{capsys.readouterr().out}", 1)
    assert answer.rails >= 1


def test_the_smallest_node_decides_and_is_named() -> None:
    answers = [Answer("n0", 8, "8 HCAs"), Answer("n1", 2, "2 HCAs"), Answer("n2", 8, "8 HCAs")]
    assert settle(answers) == (2, "--rails auto: 2 rails per node, as n1 (2 HCAs) can have, though others 8")
    assert settle(answers[:1]) == (8, "--rails auto: 8 rails per node (8 HCAs)")


def test_a_node_that_says_nothing_is_missed() -> None:
    with pytest.raises(PreflightError, match="0 of 2 nodes"):
        read_answers("", 2)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--rails 0", "neither auto nor a whole number"),
        ("--rails 65", "neither auto nor a whole number"),
        ("--rails 2 --rail-devices a", "2 rails, but 1 devices"),
        ("--rails 2 --rail-cpus 0/1/2", "2 rails, but 3 lists of CPUs"),
        ("--rail-devices a", "need --rails"),
        ("--rails 2 --no-broadcast", "--no-broadcast is for one rank, --rails says more"),
        ("--rails auto --rail-gid-index x", "neither none nor an entry"),
    ],
)
def test_options_that_do_not_fit_are_refused(words: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        parse_options(["/s", "/d", *words.split()])
