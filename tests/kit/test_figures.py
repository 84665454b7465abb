"""The tiles and words of a picture are true of runs that were stopped, or that read from nodes' disks."""

from __future__ import annotations

import copy
from typing import Any

from azcp_kit.report import parse_report
from azcp_kit.timeline import Timeline, timeline

from tests.kit.reports import REPORT, changed

PEERS = {"transfer": 2, "peer": 2, "azure": 0, "skipped": 0, "seconds": 0.0}
STOPPED = {"status": "interrupted", "exit_code": 75, "reason": "stopped by SIGTERM"}


def drawn(**values: object) -> Timeline:
    """The drawing of the report with other values in it."""
    return timeline(parse_report(copy.deepcopy(REPORT) | values))


def stages(**values: object) -> dict[str, Any]:
    """The stages with other values in them."""
    changed_stages: dict[str, Any] = copy.deepcopy(REPORT["stages"]) | values
    return changed_stages


def tiles(drawing: Timeline) -> dict[str, tuple[str, str]]:
    return {tile.label: (tile.value, tile.note) for tile in drawing.tiles}


def stopped(**values: object) -> Timeline:
    """A run of 3 nodes that was stopped in the pass."""
    begun = {name: REPORT["stages"][name] for name in ("list", "diff")}
    return drawn(stages=begun, outcome=STOPPED, nodes=3, **values)


def test_the_tiles_of_a_stopped_run_are_what_was_moved_so_far() -> None:
    found = tiles(stopped())
    assert found["Downloaded"] == ("30 B", "so far, on 1 of 3 nodes")
    assert found["Received"] == ("0 B", "so far, on 1 of 3 nodes")
    assert found["Total time"] == ("-", "ended early, 1 retry")
    assert found["Nodes"] == ("3", "1 rank reported")


def test_a_stopped_run_says_which_node_reported_and_is_never_done() -> None:
    drawing = stopped()
    assert drawing.hidden == "Of 3 nodes only node 0 reported."
    assert [band.done for band in drawing.bands] == ["stopped after 1.00 s"]
    assert drawing.head[-1] == "Stopped after"


def test_a_run_that_stopped_before_the_pass_has_no_figures() -> None:
    drawing = stopped(ranks=[])
    assert drawing.hidden == "Of 3 nodes none reported."
    assert tiles(drawing)["Downloaded"] == ("-", "none reported")


def test_the_rails_of_one_node_that_did_not_report_are_told() -> None:
    begun = {name: REPORT["stages"][name] for name in ("list", "diff")}
    assert drawn(stages=begun, outcome=STOPPED, rails=3).hidden == "Of 3 ranks only 1 reported."


def test_a_run_that_failed_after_the_pass_keeps_its_rates() -> None:
    ended = {name: stage for name, stage in REPORT["stages"].items() if name != "total"}
    drawing = drawn(stages=ended, outcome=STOPPED | {"status": "failed"})
    assert tiles(drawing)["Download"] == ("240 b/s", "all nodes together")
    assert [band.done for band in drawing.bands] == ["done after 1.00 s"]
    assert drawing.hidden == ""


def test_what_came_from_nodes_disks_is_not_called_a_download() -> None:
    drawing = drawn(stages=stages(diff=PEERS, download={"bytes": 0, "seconds": 1.0}))
    assert drawing.bands[0].rows[0].label == "Read"
    assert drawing.keys[0].text.startswith("from its own disk, 0 to ")
    assert drawing.head[3] == "Read"
    assert drawing.title.startswith("Read, ")
    assert tiles(drawing)["Download"] == ("-", "all was read from nodes' disks")


def test_a_node_that_missed_nothing_is_not_done_after_no_time_nor_the_other_slow() -> None:
    nothing = {"seconds": [0.1, 1], "fetched": [0, 30], "received": [0, 0], "written": [0, 0]}
    source = changed(written_bytes=0, samples=nothing)["ranks"][0]
    other = changed(rank=1, node=1)["ranks"][0]
    drawing = drawn(nodes=2, ranks=[source, other])
    assert [band.done for band in drawing.bands] == ["nothing to write", "done after 1.00 s"]
    assert [row.cells[-1] for row in drawing.table] == ["-", "1.00 s"]
    assert not any(band.slowest for band in drawing.bands)


def test_a_run_is_stopped_at_its_last_sample_though_it_wrote_nothing_then() -> None:
    samples = {"seconds": [0, 1, 4], "fetched": [0, 30, 30], "received": [0, 0, 0], "written": [0, 30, 30]}
    drawing = stopped(ranks=changed(samples=samples)["ranks"])
    assert (drawing.bands[0].done, drawing.bands[0].finish) == ("stopped after 4.00 s", "25.00")


def test_parts_from_nodes_disks_are_seen_where_every_file_needs_the_source() -> None:
    drawing = drawn(stages=stages(download={"bytes": 10, "seconds": 1.0}))
    assert drawing.bands[0].rows[0].label == "Read"
    assert drawing.keys[0].text.startswith("from the source or its own disk, 0 to ")
    assert tiles(drawing)["Download"] == ("80.0 b/s", "from the source alone")


def test_a_download_is_called_one() -> None:
    drawing = drawn()
    assert (drawing.bands[0].rows[0].label, drawing.head[3], drawing.head[-1]) == (
        "Download",
        "Downloaded",
        "Done after",
    )


def test_a_run_that_had_nothing_to_do_has_no_rate() -> None:
    idle = changed(fetched_bytes=0)["ranks"]
    nothing = {"bytes": 0, "seconds": 0.0}
    found = tiles(drawn(stages=stages(download=nothing, bcast=nothing | {"shards": 0}), ranks=idle))
    assert (found["Download"], found["Broadcast"]) == (("-", "nothing was missing"), ("-", "one node"))


def test_the_stages_outside_of_the_axis_have_their_times() -> None:
    verify = {"files": 2, "match": 2, "mismatch": 0, "absent": 0, "seconds": 8.6}
    told = drawn(stages=stages(verify=verify)).around
    assert told == "0 s is where the pass begins; before it list 0.10 s; after it verify 8.60 s"
    assert stopped(ranks=[]).around == "0 s is where the pass begins; before it list 0.10 s"
