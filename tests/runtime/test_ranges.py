"""Ranges and segments: the same bytes as sets of bytes would hold, whatever nodes have of a file."""

from __future__ import annotations

from array import array
from itertools import pairwise
from typing import Final

from azcp_runtime.plan.chunks import ALIGN
from azcp_runtime.plan.make import PlanRequest, make_plan
from azcp_runtime.plan.presence import AZURE, SKIP, Segment
from azcp_runtime.plan.ranges import Range, covers, merged, on_grid, total
from azcp_runtime.plan.segments import boundaries, decided, make_grid, origin_of_all, pieces_between
from azcp_runtime.plan.shards import Cluster
from hypothesis import given
from hypothesis import strategies as st

SIZE: Final = 40
NODES: Final = 3
RANGES: Final = st.lists(st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)), max_size=12)
MIB: Final = 1 << 20


def bytes_of(ranges: list[Range]) -> set[int]:
    return {byte for start, end in ranges for byte in range(start, end)}


@given(RANGES)
def test_merged_ranges_hold_the_same_bytes_in_order_and_do_not_touch(ranges: list[Range]) -> None:
    found = merged(ranges)
    assert bytes_of(found) == bytes_of(ranges)
    assert all(before[1] < after[0] for before, after in pairwise(found))
    assert total(found) == len(bytes_of(ranges))


@given(RANGES, st.integers(0, SIZE - 1), st.integers(1, SIZE))
def test_ranges_cover_what_all_their_bytes_do(ranges: list[Range], start: int, length: int) -> None:
    wanted = set(range(start, start + length))
    assert covers(merged(ranges), start, start + length) == (wanted <= bytes_of(ranges))


@given(RANGES, st.integers(1, 7))
def test_a_coarser_grid_never_adds_a_byte(ranges: list[Range], grid: int) -> None:
    kept = list(on_grid(merged(ranges), grid, SIZE))
    assert bytes_of(kept) <= bytes_of(ranges)
    assert all(start % grid == 0 and (end % grid == 0 or end == SIZE) for start, end in kept)


def segments_of(nodes: list[list[Range]], size: int, most_bits: int = 1 << 20) -> list[Segment]:
    """What all nodes find together, each with its ranges of file 5."""
    grid = make_grid([5], [size], most_bits)
    maps = [boundaries(grid, {5: ranges}) for ranges in nodes]
    words = array("Q", (a | b | c for a, b, c in zip(*maps, strict=True)))
    pieces = pieces_between(grid, words)
    has = [[covers(ranges, start, end) for _, start, end in pieces] for ranges in nodes]
    holders = [sum(column) for column in zip(*has, strict=True)]
    nearest = [
        min((node - place) % NODES if has[node][place] else NODES for node in range(NODES))
        for place in range(len(pieces))
    ]
    return decided(pieces, nearest, holders, NODES)[5]


@given(st.lists(RANGES, min_size=NODES, max_size=NODES), st.integers(0, ALIGN - 1), st.integers(1, 64))
def test_every_byte_of_a_file_has_one_origin_that_holds_it(
    drawn: list[list[Range]], tail: int, most_bits: int
) -> None:
    size = SIZE * ALIGN + tail
    nodes = [
        merged((start * ALIGN, size if end == SIZE else end * ALIGN) for start, end in ranges)
        for ranges in drawn
    ]
    segments = segments_of(nodes, size, most_bits)
    assert [each.start for each in segments] == [0, *(each.end for each in segments[:-1])]
    assert segments[-1].end == size
    for each in segments:
        holding = [node for node in range(NODES) if covers(nodes[node], each.start, each.end)]
        if each.origin == SKIP:
            assert len(holding) == NODES
        elif each.origin != AZURE:
            assert each.origin in holding


def test_on_a_fine_grid_only_what_nobody_holds_comes_from_the_source() -> None:
    size = 10 * ALIGN + 5
    nodes: list[list[Range]] = [[(0, 4 * ALIGN)], [(0, 2 * ALIGN), (6 * ALIGN, size)], [(0, 4 * ALIGN)]]
    segments = segments_of(nodes, size)
    missing = [(each.start, each.end) for each in segments if each.origin == AZURE]
    skipped = [(each.start, each.end) for each in segments if each.origin == SKIP]
    assert (missing, skipped) == ([(4 * ALIGN, 6 * ALIGN)], [(0, 2 * ALIGN)])
    assert origin_of_all(segments) == AZURE


def test_a_plan_moves_the_segments_that_are_missing_and_nothing_else() -> None:
    sizes, origin = array("Q", [5, 20 * MIB, 7]), array("l", [AZURE] * 3)
    segments = {
        1: [
            Segment(0, 8 * MIB, SKIP),
            Segment(8 * MIB, 12 * MIB, 1),
            Segment(12 * MIB, 20 * MIB, AZURE),
        ]
    }
    request = PlanRequest(Cluster(2, 1, 2), 1 << 30, chunk_bytes=MIB)
    plan, _ = make_plan(sizes, origin, request, segments)
    moved: dict[int, list[Range]] = {}
    by_node_1: list[Range] = []
    for lane in plan.lanes:
        for chunk in range(lane.first_chunk, lane.first_chunk + lane.chunks):
            for extent in plan.extents(chunk):
                start = plan.offset[extent]
                moved.setdefault(plan.file[extent], []).append((start, start + plan.length[extent]))
                if lane.owner == 1 and plan.file[extent] == 1:
                    by_node_1.append((start, start + plan.length[extent]))
    assert {file: merged(ranges) for file, ranges in moved.items()} == {
        0: [(0, 5)],
        1: [(8 * MIB, 20 * MIB)],
        2: [(0, 7)],
    }
    assert total(r for ranges in moved.values() for r in ranges) == 12 * MIB + 12
    assert covers(merged(by_node_1), 8 * MIB, 12 * MIB)
