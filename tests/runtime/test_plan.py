"""The plan: every byte once, balanced, aligned, the same on each rank, within the budget."""

from __future__ import annotations

import math
from array import array
from collections import Counter

import pytest
from azcp_runtime.contract import PlanError
from azcp_runtime.plan.budget import make_budget, memory_of, most_connections
from azcp_runtime.plan.chunks import ALIGN, Plan, aligned, slot_bytes
from azcp_runtime.plan.make import PlanRequest, make_plan
from azcp_runtime.plan.presence import AZURE, SKIP, classify, rotated
from azcp_runtime.plan.shards import SMALL_FILE_BYTES, Cluster
from azcp_runtime.planner import spread_percent
from hypothesis import given, settings
from hypothesis import strategies as st

MIB = 1 << 20


def plan_of(sizes: list[int], request: PlanRequest, origin: list[int] | None = None) -> Plan:
    return make_plan(array("Q", sizes), array("l", origin or [AZURE] * len(sizes)), request)[0]


def ranges_of(plan: Plan, files: int) -> list[list[tuple[int, int]]]:
    found: list[list[tuple[int, int]]] = [[] for _ in range(files)]
    for file, offset, length in zip(plan.file, plan.offset, plan.length, strict=True):
        found[file].append((offset, length))
    return [sorted(ranges) for ranges in found]


def assert_covers_once(plan: Plan, sizes: list[int], origin: list[int]) -> None:
    for size, where, ranges in zip(sizes, origin, ranges_of(plan, len(sizes)), strict=True):
        at = 0
        for offset, length in ranges:
            assert offset == at
            at += length
        assert at == (0 if where == SKIP else size)


_sizes = st.lists(
    st.one_of(
        st.integers(0, 5000),
        st.integers(0, 3 * MIB),
        st.sampled_from([0, 1, 4095, 4096, 4097, SMALL_FILE_BYTES]),
    ),
    max_size=60,
)


@settings(deadline=None, max_examples=150)
@given(
    sizes=_sizes,
    nodes=st.integers(1, 5),
    rails=st.integers(1, 3),
    chunk=st.sampled_from([None, 1, 4096, 65536, 65537, MIB]),
    shard=st.sampled_from([None, 4096, 300_000, MIB]),
    data=st.data(),
)
def test_every_byte_that_moves_is_in_exactly_one_extent(
    sizes: list[int], nodes: int, rails: int, chunk: int | None, shard: int | None, data: st.DataObject
) -> None:
    downloaders = data.draw(st.integers(1, nodes * rails))
    origin = [data.draw(st.sampled_from([AZURE, SKIP, *range(nodes)])) for _ in sizes]
    request = PlanRequest(Cluster(nodes, rails, downloaders), 1 << 30, chunk_bytes=chunk, shard_bytes=shard)
    plan, budget = make_plan(array("Q", sizes), array("l", origin), request)
    assert_covers_once(plan, sizes, origin)
    assert budget.memory_bytes <= 1 << 30
    for lane in plan.lanes:
        assert lane.payload_bytes <= aligned(budget.chunk_bytes)
        for at in range(lane.first_chunk, lane.first_chunk + lane.chunks):
            end = 0
            for extent in plan.extents(at):
                assert plan.slot[extent] >= end
                end = plan.slot[extent] + plan.length[extent]
                is_whole_small = plan.length[extent] == sizes[plan.file[extent]] <= SMALL_FILE_BYTES
                if not is_whole_small:
                    assert plan.slot[extent] % ALIGN == plan.offset[extent] % ALIGN == 0
                    assert aligned(end) <= lane.payload_bytes
            assert end <= lane.payload_bytes
        for extent in range(
            plan.chunk_start[lane.first_chunk], plan.chunk_start[lane.first_chunk + lane.chunks]
        ):
            where = origin[plan.file[extent]]
            assert where == AZURE or where == lane.owner // rails


def test_the_plan_is_the_same_wherever_it_is_made() -> None:
    sizes = [(i * 7919) % (3 * MIB) for i in range(500)]
    request = PlanRequest(Cluster(4, 2, 8), 1 << 30)
    assert plan_of(sizes, request).digest() == plan_of(sizes, request).digest()
    assert plan_of(sizes, request).digest() != plan_of(sizes[:-1], request).digest()


@pytest.mark.parametrize(
    "sizes",
    [[400 << 30], [10 << 30] * 6, [(i * 7919) % (30 * MIB) for i in range(20_000)], [8192] * 50_000],
    ids=["one file", "six files", "mixed", "small"],
)
def test_owners_differ_by_less_than_two_percent(sizes: list[int]) -> None:
    plan = plan_of(sizes, PlanRequest(Cluster(16, 1, 16), 4 << 30))
    assert len(plan.lanes) == 16
    assert spread_percent(plan) < 2


def test_small_files_travel_many_to_a_chunk() -> None:
    plan = plan_of([8192] * 20_000, PlanRequest(Cluster(4, 1, 4), 2 << 30))
    assert len(plan.chunk_start) - 1 < 20_000 // 50


def test_the_last_chunk_of_a_lane_is_as_full_as_the_others() -> None:
    plan = plan_of([100 * MIB + 1], PlanRequest(Cluster(1, 1, 1), 2 << 30, chunk_bytes=16 * MIB))
    (lane,) = plan.lanes
    assert lane.chunks == 7
    assert lane.payload_bytes < 15 * MIB


def test_only_download_ranks_read_and_each_node_has_one_before_any_has_two() -> None:
    assert Cluster(4, 1, 3).downloaders() == [0, 1, 2]
    assert Cluster(4, 2, 3).downloaders() == [0, 3, 4]
    assert Cluster(2, 2, 3).downloaders() == [0, 3, 1]
    plan = plan_of([MIB] * 100, PlanRequest(Cluster(4, 2, 3), 1 << 30))
    assert [lane.owner for lane in plan.lanes] == [0, 3, 4]


@given(st.integers(1, 20), st.integers(1, 9), st.data())
def test_few_that_read_are_spread_over_rails_and_nodes(nodes: int, rails: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, nodes * rails))
    seats = Cluster(nodes, rails, count).downloaders()
    assert len(set(seats)) == count
    by_node = Counter(seat // rails for seat in seats)
    by_rail = [sum(seat % rails == rail for seat in seats) for rail in range(rails)]
    assert max(by_node.values()) == -(-count // nodes)
    # Each turn over all nodes may give a rail one more than another.
    assert max(by_rail) - min(by_rail) <= min(rails, -(-count // nodes))


def test_file_shards_cut_the_largest_file_into_so_many_ranges() -> None:
    plan = plan_of([64 * MIB, MIB], PlanRequest(Cluster(4, 1, 4), 1 << 30, file_shards=4))
    assert plan.shards == 5


def test_nothing_to_move_is_a_plan_without_lanes() -> None:
    for sizes, origin in (([], []), ([0, 0], [AZURE, AZURE]), ([5], [SKIP])):
        plan = plan_of(sizes, PlanRequest(Cluster(4, 1, 4), 1 << 30), origin)
        assert (plan.lanes, list(plan.chunk_start)) == ((), [0])


@settings(max_examples=200)
@given(
    memory=st.integers(1 << 20, 1 << 36),
    lanes=st.integers(1, 2048),
    share=st.integers(0, 1 << 42),
    chunk=st.sampled_from([None, 4096, MIB, 8 << 30]),
    depth=st.sampled_from([None, 1, 7]),
)
def test_a_budget_never_exceeds_memory(
    memory: int, lanes: int, share: int, chunk: int | None, depth: int | None
) -> None:
    try:
        budget = make_budget(memory, lanes, share, chunk=chunk, depth=depth)
    except PlanError:
        return
    assert budget.memory_bytes <= memory
    assert budget.memory_bytes == slot_bytes(budget.chunk_bytes) * (
        budget.own_slots + (lanes - 1) * budget.lane_slots
    )
    assert depth is None or budget.lane_slots == depth


def test_a_chunk_that_does_not_fit_memory_is_refused_with_what_to_change() -> None:
    with pytest.raises(PlanError, match="--memory is 1.0 GiB; raise --memory, or lower --bcast-chunk"):
        make_budget(1 << 30, 4, 1 << 40, chunk=8 << 30)


def test_few_downloaders_leave_the_memory_to_few_lanes() -> None:
    sizes, origin = array("Q", [1 << 40]), array("l", [AZURE])
    few = make_plan(sizes, origin, PlanRequest(Cluster(1024, 1, 1), 1 << 30, chunk_bytes=16 * MIB))[1]
    assert (few.chunk_bytes, few.lane_slots) == (16 * MIB, 4)


def test_memory_does_not_grow_with_the_cluster() -> None:
    needs = [make_budget(1 << 30, lanes, (1 << 40) // lanes).memory_bytes for lanes in (2, 16, 128, 1024)]
    assert max(needs) <= 1 << 30


def test_memory_counts_only_the_lanes_of_a_rank_own_rail() -> None:
    plan, budget = make_plan(
        array("Q", [64 * MIB] * 16), array("l", [AZURE] * 16), PlanRequest(Cluster(2, 4, 8), 1 << 30)
    )
    per_rail = memory_of(plan, 4, budget.own_slots, budget.lane_slots)
    assert budget.memory_bytes == per_rail < memory_of(plan, 1, budget.own_slots, budget.lane_slots)


def test_files_are_sorted_by_who_holds_them() -> None:
    diff = classify([3, 0, 1], [0, 3, 1], nodes=3)
    assert (list(diff.origin), diff.azure, diff.skipped, diff.peer) == ([AZURE, SKIP, 0], 1, 1, 1)


def test_the_node_that_sends_a_file_holds_it() -> None:
    nodes, holders = 5, {1, 4}
    for file in range(20):
        nearest = min(rotated(node, file, nodes) for node in holders)
        diff = classify([nodes] * file + [nearest], [0] * file + [len(holders)], nodes)
        assert diff.origin[file] in holders


@pytest.mark.parametrize(
    ("own", "machine", "quota", "rails", "expected"),
    [
        (2, 2, math.inf, 1, 32),
        (96, 96, math.inf, 1, 300),
        (96, 96, math.inf, 8, 37),  # all share all CPUs
        (1, 96, math.inf, 8, 16),  # each is bound to one
        (96, 96, 4.0, 1, 64),
        (96, 96, 4.0, 8, 8),
        (1, 1, 0.1, 1, 4),
    ],
)
def test_connections_are_found_from_the_cpus_that_a_rank_may_use(
    own: int, machine: int, quota: float, rails: int, expected: int
) -> None:
    assert most_connections(own, machine, quota, rails) == expected
