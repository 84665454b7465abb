"""The picture's model: rates follow from cumulative bytes, on one scale, with the slowest node marked."""

from __future__ import annotations

import pytest
from azcp_kit.axes import nice_ceiling, step_path, time_ticks
from azcp_kit.rates import finish, node_rates, sum_of_rates, value_at
from azcp_kit.report import RankRecord, Report, Samples
from azcp_kit.timeline import MAX_DRAWN_NODES, TABLE_HEAD, timeline
from hypothesis import given
from hypothesis import strategies as st


def record(rank: int, node: int, seconds: float, size_bytes: int = 4000) -> RankRecord:
    """A rank that fetches a quarter, receives the rest, and writes all of it at a steady rate."""
    return RankRecord(
        rank=rank,
        node=node,
        host=f"n{node}",
        fetched_bytes=size_bytes // 4,
        received_bytes=size_bytes - size_bytes // 4,
        written_bytes=size_bytes,
        cpu_seconds=1.5,
        max_rss_bytes=2**20,
        samples=Samples(
            seconds=(0.0, seconds),
            fetched=(0.0, size_bytes / 4),
            received=(0.0, size_bytes * 3 / 4),
            written=(0.0, float(size_bytes)),
        ),
    )


def report(*ranks: RankRecord, nodes: int = 4) -> Report:
    return Report(
        source="/data",
        dest="/nvme",
        outcome="",
        facts=(),
        nodes=nodes,
        files=3,
        size_bytes=4000,
        stage_seconds={"download": 2.0, "bcast": 4.0, "total": 5.0},
        stage_bytes={"download": 4000, "bcast": 4000},
        ranks=ranks,
        retries={"503": 2, "429": 0},
    )


def test_a_node_has_a_band_with_a_row_for_each_rate() -> None:
    bands = timeline(report(record(0, 0, 4), record(1, 1, 4))).bands
    assert [band.name for band in bands] == ["Node 0", "Node 1"]
    assert [row.kind for row in bands[0].rows] == ["download", "broadcast", "write"]


def test_the_node_that_writes_its_last_byte_last_is_the_slowest() -> None:
    drawing = timeline(report(record(0, 0, 4), record(1, 1, 5), record(2, 2, 3)))
    assert [band.slowest for band in drawing.bands] == [False, True, False]
    assert [row.slowest for row in drawing.table] == [False, True, False]


def test_no_node_is_called_slowest_where_all_are_done_together() -> None:
    drawing = timeline(report(record(0, 0, 6.20), record(1, 1, 6.21)))
    assert not any(band.slowest for band in drawing.bands)
    assert not timeline(report(record(0, 0, 4))).bands[0].slowest


def test_all_nodes_share_a_scale_and_so_do_broadcast_and_write() -> None:
    # Node 1 writes 4000 bytes in one second: 32 kb/s, so that 40 kb/s is the full height for all.
    drawing = timeline(report(record(0, 0, 4), record(1, 1, 1)))
    assert [key.text.rpartition(" to ")[2] for key in drawing.keys] == ["8.00 kb/s", "40.0 kb/s", "40.0 kb/s"]
    assert drawing.bands[1].rows[2].line.startswith("M0 100V20.0")
    assert drawing.bands[0].rows[2].line.startswith("M0 100V80.0")


def test_the_download_of_many_nodes_is_drawn_on_a_scale_of_its_own() -> None:
    drawing = timeline(report(record(0, 0, 4), record(1, 1, 4)))
    assert drawing.bands[0].rows[0].line.startswith("M0 100V0.0")


def test_the_download_of_all_nodes_names_its_own_scale() -> None:
    together = timeline(report(record(0, 0, 4), record(1, 1, 4))).together
    assert together
    assert together.host == "download in total, 0 to 4.00 kb/s; broadcast and write per node"


def test_the_ranks_of_a_node_are_summed() -> None:
    (node,) = node_rates(report(record(0, 0, 4), record(1, 0, 4)))
    assert node.written[0] == pytest.approx(2000)
    assert timeline(report(record(0, 0, 4), record(1, 0, 4))).table[0].cells[:6] == (
        "0",
        "n0",
        "2",
        "1.95 KiB",
        "5.86 KiB",
        "7.81 KiB",
    )


def test_the_table_has_every_node_and_the_picture_the_slowest_of_many() -> None:
    many = [record(node, node, 1 + node) for node in range(MAX_DRAWN_NODES + 8)]
    drawing = timeline(report(*many, nodes=len(many)))
    assert len(drawing.table) == len(many)
    assert [band.name for band in drawing.bands][:2] == ["Node 8", "Node 9"]
    assert len(drawing.bands) == MAX_DRAWN_NODES
    assert drawing.hidden.startswith("The 8 nodes")


def test_every_line_of_the_table_is_as_wide_as_its_head() -> None:
    drawing = timeline(report(record(0, 0, 4)))
    assert {len(drawing.total), len(drawing.table[0].cells)} == {len(TABLE_HEAD)}


def test_a_run_that_had_nothing_to_move_is_drawn_flat() -> None:
    idle = RankRecord(0, 0, "n0", 0, 0, 0, 0.0, 0, Samples((), (), (), ()))
    drawing = timeline(report(idle))
    assert drawing.bands[0].rows[0].line == ""
    assert [tick.label for tick in drawing.ticks] == ["0 s"]


def test_retries_of_all_classes_are_counted_together() -> None:
    assert "2 retries" in [tile.note for tile in timeline(report(record(0, 0, 4))).tiles]


def test_a_curve_is_straight_between_its_samples_and_flat_after_the_last() -> None:
    times, values = (1.0, 3.0), (10.0, 30.0)
    assert [value_at(times, values, time) for time in (0, 0.5, 1, 2, 3, 9)] == [0, 5, 10, 20, 30, 30]


def test_two_samples_at_one_time_are_a_step() -> None:
    assert value_at((1.0, 1.0, 2.0), (0.0, 8.0, 8.0), 1.5) == 8


@given(st.lists(st.integers(min_value=0, max_value=10**9), min_size=1, max_size=50))
def test_rates_times_their_spans_give_back_the_bytes(steps: list[int]) -> None:
    times = tuple(float(index + 1) for index in range(len(steps)))
    totals = tuple(float(sum(steps[: index + 1])) for index in range(len(steps)))
    edges = [index * len(steps) / 7 for index in range(8)]
    rates = sum_of_rates([(times, totals)], edges)
    assert sum(rates) * len(steps) / 7 == pytest.approx(totals[-1])


def test_a_node_is_done_when_its_last_byte_is_written_though_sampling_goes_on() -> None:
    assert finish((0.0, 1.0, 2.0, 3.0), (0.0, 5.0, 9.0, 9.0)) == 2.0


@pytest.mark.parametrize(
    ("bits_per_s", "top"), [(1.0, 1), (1.1e9, 2e9), (3e9, 4e9), (4.5e9, 5e9), (8.1e9, 1e10)]
)
def test_the_scale_ends_at_a_round_rate(bits_per_s: float, top: float) -> None:
    assert nice_ceiling(bits_per_s / 8) * 8 == pytest.approx(top)


@given(st.floats(min_value=1e-3, max_value=1e15))
def test_no_rate_is_above_the_scale(bytes_per_s: float) -> None:
    assert bytes_per_s <= nice_ceiling(bytes_per_s) * (1 + 1e-9) <= bytes_per_s * 2.01


def test_time_is_marked_at_round_seconds() -> None:
    assert [(tick.place, tick.label) for tick in time_ticks(5.0)][:3] == [
        ("0.00", "0 s"),
        ("20.00", "1 s"),
        ("40.00", "2 s"),
    ]


@given(st.floats(min_value=1e-3, max_value=1e6))
def test_the_time_axis_has_a_handful_of_marks(end_s: float) -> None:
    assert 3 <= len(time_ticks(end_s)) <= 7


def test_a_step_is_drawn_for_each_value() -> None:
    assert step_path([0.5, 1.0]) == "M0 100V50.0H500.0V0.0H1000.0"
