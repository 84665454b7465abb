"""How what many nodes found becomes something that one person can read."""

from __future__ import annotations

import pytest
from azcp_runtime.doctor.check import Amount, Check, Status, fail, ok, warn
from azcp_runtime.doctor.gather import (
    Group,
    NodeReport,
    as_json,
    decode,
    encode,
    gather_reports,
    group,
    mark_slow,
    parted,
    worst,
)
from azcp_runtime.doctor.table import printable, table, verdict
from azcp_runtime.mpi.solo import Solo

GIGA = 1_000_000_000


def report(node: int, *checks: Check) -> NodeReport:
    return NodeReport(node, f"n{node}", checks)


def speed(gigabytes: float) -> Check:
    return ok("write speed", "", Amount(round(gigabytes * GIGA), "bytes/s"))


def lines(reports: list[NodeReport], width: int = 100) -> list[str]:
    return list(table(group(reports), width))


def test_a_report_is_the_same_after_its_journey() -> None:
    sent = report(3, warn("a", "b", "c"), ok("memory", "free", Amount(7, "bytes")), speed(1))
    assert decode(encode(sent)) == sent


def test_a_world_of_one_gathers_its_own_report() -> None:
    (only,) = gather_reports(Solo({}), [ok("a", "b")])
    assert only.checks == (ok("a", "b"),)


def test_nodes_with_equal_findings_share_a_table_although_their_numbers_differ() -> None:
    groups = group([report(node, ok("a", "b"), speed(1 + node / 10)) for node in range(3)])
    assert [each.hosts for each in groups] == [("n0", "n1", "n2")]
    assert groups[0].spans == (
        None,
        (Amount(GIGA, "bytes/s"), Amount(round(1.2 * GIGA), "bytes/s")),
    )


def test_a_node_that_found_something_else_has_a_table_of_its_own() -> None:
    reports = [report(node, fail("a", "b", "c") if node == 1 else ok("a", "b")) for node in range(3)]
    assert [each.hosts for each in group(reports)] == [("n0", "n2"), ("n1",)]
    assert worst(reports) is Status.FAIL


def test_a_node_that_differs_in_one_check_does_not_repeat_the_others() -> None:
    reports = [report(node, ok("a", "b"), speed(4 - node / 10), ok("c", "d")) for node in range(4)]
    reports[2] = report(2, ok("a", "b"), speed(1), ok("c", "d"))
    assert list(table(parted(mark_slow(reports)), 100)) == [
        "n0 n1 n2 n3",
        "  ok    a  b",
        "  ok    c  d",
        "",
        "n0 n1 n3",
        "  ok    write speed  3.70 GB/s to 4.00 GB/s",
        "",
        "n2",
        "  warn  write speed  less than half of what most nodes have 1.00 GB/s",
        "                     -> drain this node, or look at what it has else",
    ]


def test_a_check_that_one_node_alone_has_is_shown_for_that_node() -> None:
    more = [report(0, ok("a", "b"), ok("more", "x")), report(1, ok("a", "b"))]
    assert [(each.hosts, len(each.checks)) for each in parted(more)] == [(("n0", "n1"), 1), (("n0",), 1)]
    assert parted([]) == []


@pytest.mark.parametrize(
    ("checks", "told"),
    [
        ((ok("a", ""),), "no warnings, nothing fails"),
        ((warn("a", "", ""), warn("b", "", ""), ok("c", "")), "2 warnings, nothing fails"),
        ((fail("a", "", ""), warn("b", "", "")), "1 failure, 1 warning"),
    ],
)
def test_the_last_line_tells_how_much_is_wrong(checks: tuple[Check, ...], told: str) -> None:
    assert verdict([report(0, *checks)]) == told
    assert verdict([report(node, *checks) for node in range(3)]) == f"3 nodes: {told}"


def test_a_thousand_nodes_fit_a_screen() -> None:
    text = lines([report(node, ok("a", "b"), speed(1)) for node in range(1024)])
    assert text == [
        "n0 n1 n2 n3 n4 n5 n6 n7 ... (1024 nodes)",
        "  ok    a            b",
        "  ok    write speed  1.00 GB/s",
    ]


def test_a_remedy_stands_below_what_it_is_for_and_is_wrapped() -> None:
    text = lines([report(0, fail("memlock", "too low " * 10, "raise it"))], width=60)
    assert text[1].startswith("  fail  memlock  too low")
    assert all(len(line) <= 60 for line in text)
    assert text[-1] == "                 -> raise it"


def test_a_table_of_nothing_is_nothing() -> None:
    assert lines([]) == []
    assert list(table([Group(("n0",), (), ())], 80)) == ["n0"]


def test_host_names_cannot_drive_the_terminal() -> None:
    assert lines([NodeReport(0, "n\x1b[2J", ())]) == ["n\\x1b[2J"]


def test_a_terminal_that_knows_ascii_alone_gets_escapes() -> None:
    assert printable("fs\u00e9", "ascii") == "fs\\xe9"
    assert printable("fs\u00e9", None) == "fs\\xe9"
    assert printable("fs\u00e9", "utf-8") == "fs\u00e9"


def test_a_node_much_slower_than_most_is_warned_of() -> None:
    marked = mark_slow([report(node, speed(1.0 if node == 2 else 4.0)) for node in range(4)])
    statuses = [each.checks[0].status for each in marked]
    assert statuses == [Status.OK, Status.OK, Status.WARN, Status.OK]
    assert marked[2].checks[0].found == "less than half of what most nodes have"


@pytest.mark.parametrize("speeds", [(1.0, 4.0), (3.0, 4.0, 5.0)])
def test_nobody_is_called_slow_without_a_majority_that_is_faster(speeds: tuple[float, ...]) -> None:
    reports = [report(node, speed(each)) for node, each in enumerate(speeds)]
    assert mark_slow(reports) == reports


def test_what_fails_already_is_not_softened() -> None:
    bad = fail("write speed", "failed", "look", Amount(1, "bytes/s"))
    reports = [report(0, bad), report(1, speed(4)), report(2, speed(4))]
    assert mark_slow(reports)[0].checks[0] == bad


def test_scripts_get_numbers_as_numbers() -> None:
    assert as_json(report(1, speed(1.5))) == {
        "node": 1,
        "host": "n1",
        "checks": [
            {
                "name": "write speed",
                "status": "ok",
                "found": "",
                "remedy": "",
                "value": 1_500_000_000,
                "unit": "bytes/s",
            }
        ],
    }
