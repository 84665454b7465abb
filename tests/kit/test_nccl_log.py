"""Logs of nccl-tests and rccl-tests are read in each layout, through whatever is between their lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from azcp_kit.nccl.log import Run, read_run
from hypothesis import given
from hypothesis import strategies as st

LOGS = Path(__file__).parent / "nccl"
A100 = (LOGS / "a100-4-nodes.log").read_text(encoding="utf-8")
HEADER = next(line for line in A100.splitlines(keepends=True) if "busbw" in line)
ROW = (
    "  1073741824     268435456     float     sum      -1    11180   96.04  186.08      0"
    "    11179   96.05  186.10"
)
NOISE = "node1:7:9 [0] NCCL INFO Connected all rings\n"


def busbw(run: Run) -> tuple[float, ...]:
    """Of the largest message, each way."""
    return tuple(way.busbw_gbps for way in run.largest.ways)


def test_a_run_of_four_nodes_is_read_whole() -> None:
    run = read_run(A100)
    assert [row.size_bytes for row in run.rows] == [1 << power for power in range(20, 35) if power != 34] + [
        1 << 34
    ]
    assert busbw(run) == (186.60, 186.41)
    assert (run.ranks, run.hosts, run.worlds) == (32, ("hpc-1", "hpc-2", "hpc-3", "hpc-4"), 1)
    assert run.library == "NCCL 2.19.3"
    assert run.transports == ("NET/IB/GDRDMA", "P2P/IPC")
    assert (run.average_gbps, run.failed_checks, run.is_checked) == (152.19, 0, False)
    assert run.said == {"sku": "Standard_ND96asr_v4", "ranks": "32", "threshold": "0.9"}


def test_the_row_that_nccl_cuts_into_pieces_is_whole_again() -> None:
    first = read_run(A100).rows[0]
    assert (first.size_bytes, [way.busbw_gbps for way in first.ways]) == (1 << 20, [36.17, 36.27])


def test_per_iteration_columns_and_timestamps_are_passed_over() -> None:
    run = read_run((LOGS / "h100-per-iteration.log").read_text(encoding="utf-8"))
    assert len(run.rows) == 5
    assert busbw(run) == (471.37, 471.37)
    assert [way.wrong for row in run.rows for way in row.ways] == [0] * 10
    assert run.is_checked


def test_before_2_13_there_were_differences_and_no_count_of_wrong_elements() -> None:
    run = read_run((LOGS / "v100-before-2.13.log").read_text(encoding="utf-8"))
    assert busbw(run) == (11.19, 11.19)
    assert {way.wrong for row in run.rows for way in row.ways} == {None}
    assert (run.is_checked, run.failed_checks, run.ranks) == (True, 0, 2)


def test_rccl_may_have_run_in_place_alone() -> None:
    run = read_run((LOGS / "mi300x-in-place.log").read_text(encoding="utf-8"))
    assert run.largest.out_of_place is None
    assert busbw(run) == (333.15,)
    assert run.hosts == ("mi300x-0", "mi300x-1")


@pytest.mark.parametrize(
    "text",
    [
        f"{ROW}      0\n",
        f"{ROW[:53]}{NOISE}{ROW[53:]}      0\n",
        f"{ROW[:52]}{NOISE}{NOISE}{ROW[52:]}      0\n",
        f"{ROW[:84]}{NOISE}{ROW[84:]}      0\n",
        f"{ROW[:52]}[2026-03-02 09:14:02] node1:7:9 [0] init.cc:12 NCCL WARN slow\n{ROW[52:]}      0\n",
        f"{ROW}      0  2026-03-02 09:14:02\n",
        f"{NOISE}another rank says 12\n{ROW}      0\n",
    ],
)
def test_a_row_survives_noise_in_it(text: str) -> None:
    (row,) = read_run(HEADER + text).rows
    assert [(way.busbw_gbps, way.wrong) for way in row.ways] == [(186.08, 0), (186.10, 0)]


@pytest.mark.parametrize("label", ["0: ", "[1,0]<stdout>:", "[0] "])
def test_the_label_of_a_launcher_is_no_part_of_a_line(label: str) -> None:
    labelled = "".join(f"{label}{line}\n" for line in A100.splitlines())
    assert read_run(labelled).rows == read_run(A100).rows


def test_a_row_that_was_cut_off_is_not_counted() -> None:
    cut = A100[: A100.index("17179869184    4294967296") + 60]
    assert read_run(cut).largest.size_bytes == 8 << 30
    assert read_run(cut).average_gbps is None


def test_each_rank_with_a_rank_0_of_its_own_is_a_world_of_its_own() -> None:
    one = "#  Rank  0 Group  0 Pid   4100 on      hpc-1 device  0 [0x00] NVIDIA A100-SXM4-40GB\n"
    assert read_run(one * 32).worlds == 32


def test_of_several_rounds_the_slowest_counts() -> None:
    slow = ROW.replace("186.08", " 99.99")
    assert read_run(f"{HEADER}{ROW}      0\n{slow}      0\n").largest.first.busbw_gbps == 99.99


def test_a_network_of_a_plugin_and_sharp_are_told() -> None:
    lines = [
        "a:1:2 [0] NCCL INFO Channel 03/0 : 7[7] -> 8[0] [send] via NET/IBext_v8/7(6)/GDRDMA/Shared\n",
        "a:1:2 [0] NCCL INFO CollNet 00/0 : 0 [send] via COLLNET/SHARP/0/GDRDMA\n",
        "a:1:2 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct\n",
    ]
    assert read_run("".join(lines)).transports == ("COLLNET/SHARP/GDRDMA", "NET/IBext_v8/GDRDMA", "SHM")


def test_socket_shows_even_where_the_channels_do_not() -> None:
    assert read_run("a:1:2 [0] NCCL INFO Using network Socket\n").transports == ("NET/Socket",)


PIECES = st.sampled_from(
    [HEADER, ROW, "      0\n", NOISE, "\n", " 1 2 float sum -1", "nan", "1e+999", "N/A", "#", "inf"]
)
TEXTS = st.lists(PIECES | st.text(max_size=20) | st.integers().map(str), max_size=12).map(" ".join)


@given(TEXTS)
def test_whatever_the_text_is_it_is_read(text: str) -> None:
    run = read_run(HEADER + text + A100[-400:])
    assert all(way.busbw_gbps >= 0 for row in run.rows for way in row.ways)
