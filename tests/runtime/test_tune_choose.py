"""What the probe tries and chooses: never beyond memory or time, and the default unless another is better."""

from __future__ import annotations

import math

from azcp_runtime.contract import PlanError
from azcp_runtime.contract.units import parse_size
from azcp_runtime.options import Options, parse_options
from azcp_runtime.plan.budget import Budget
from azcp_runtime.plan.make import Demand
from azcp_runtime.tune.choose import (
    MOST_S,
    Trial,
    choose,
    chunks_for,
    ladder,
    limit_s,
    next_step,
    tries,
    trusted_s,
)
from azcp_runtime.tune.stage import LEAST_BYTES, Tuned, is_wanted
from azcp_runtime.tune.told import exact_size, tuned_figures, tuned_line
from hypothesis import given
from hypothesis import strategies as st

MIB = 1 << 20
GIB = 1 << 30
DEFAULT = Budget(4 * MIB, 4, 4, 64 * MIB)
LARGE = Budget(16 * MIB, 4, 4, 256 * MIB)
SMALL = Budget(MIB, 4, 4, 16 * MIB)
RATES = st.floats(1e3, 1e12)


def trial(budget: Budget, rate: float) -> Trial:
    return Trial(budget, GIB, GIB / rate)


def options_of(*words: str) -> Options:
    return parse_options(["/source", "/dest", *words])


@given(st.lists(st.tuples(st.sampled_from([DEFAULT, LARGE, SMALL]), RATES)), RATES | st.just(math.inf))
def test_what_is_chosen_was_measured_and_is_better_by_a_tenth_or_is_the_default(
    measured: list[tuple[Budget, float]], write_rate: float
) -> None:
    trials = [trial(*each) for each in measured]
    chosen = choose(DEFAULT, trials, write_rate)
    rates = {
        budget: min(write_rate, max(each.rate for each in trials if each.budget == budget))
        for budget in {each.budget for each in trials}
    }
    if chosen != DEFAULT:
        assert rates[chosen] > 1.1 * rates[DEFAULT]
        assert rates[chosen] == max(rates.values())
    elif DEFAULT in rates:
        assert max(rates.values()) <= 1.1 * rates[DEFAULT] * (1 + 1e-9)


def test_a_faster_broadcast_is_no_use_where_the_disk_is_slower() -> None:
    trials = [trial(DEFAULT, 2e9), trial(LARGE, 4e9)]
    assert choose(DEFAULT, trials) == LARGE
    assert choose(DEFAULT, trials, write_rate=3e9) == LARGE
    assert choose(DEFAULT, trials, write_rate=2e9) == DEFAULT


def test_of_two_that_the_disk_makes_equal_the_smaller_is_chosen() -> None:
    trials = [trial(DEFAULT, 1e9), trial(LARGE, 4e9), trial(SMALL, 3e9)]
    assert choose(DEFAULT, trials, write_rate=2e9) == SMALL


@given(
    st.integers(16 * MIB, 64 * GIB),
    st.integers(1, 1024),
    st.integers(GIB // 8, 1 << 43),
    st.none() | st.integers(1, 8),
)
def test_nothing_is_tried_that_memory_does_not_hold(
    memory: int, lanes: int, share: int, depth: int | None
) -> None:
    demand = Demand(lanes, share)

    def make(size: int, window: int | None) -> Budget | None:
        try:
            return demand.budget(memory, size, window)
        except PlanError:
            return None

    try:
        default = demand.budget(memory, None, depth)
    except PlanError:
        return
    done = [Trial(default, GIB, 0.01)]
    for budget in tries(default, done, share, make, depth=depth):
        assert budget.memory_bytes <= memory
        assert depth in (None, budget.lane_slots)
        done.append(Trial(budget, GIB, 0.01))
    assert done[1].budget == default  # measured once more, as the first time was short
    assert len(done) <= 8


def test_the_best_chunk_is_tried_with_twice_the_window() -> None:
    demand = Demand(4, 64 * GIB)
    default = demand.budget(4 * GIB, 4 * MIB, None)
    done = [Trial(default, GIB, 1.0)]
    for budget in tries(default, done, 64 * GIB, lambda size, n: demand.budget(4 * GIB, size, n), depth=None):
        seconds = 0.5 if budget.chunk_bytes == MIB else 1.0
        done.append(Trial(budget, GIB, seconds))
    assert (done[-1].budget.chunk_bytes, done[-1].budget.lane_slots) == (MIB, 2 * default.lane_slots)


@given(st.integers(1, 1024), RATES, st.floats(0.0, MOST_S))
def test_a_trial_fits_the_time_that_is_left_by_the_rate_that_is_known(
    lanes: int, rate: float, left_s: float
) -> None:
    count = chunks_for(DEFAULT, lanes, rate, left_s)
    assert count * lanes * DEFAULT.chunk_bytes <= left_s * rate
    assert count == 0 or count >= DEFAULT.lane_slots


def test_a_trial_moves_no_less_than_the_one_it_is_compared_with() -> None:
    assert chunks_for(SMALL, 4, 1e8, 1.0) == 4
    assert chunks_for(SMALL, 4, 1e8, 1.0, least_bytes=32 * MIB) == 8
    assert not chunks_for(SMALL, 4, 1e8, 1.0, least_bytes=128 * MIB)


def test_a_short_trial_is_not_trusted_for_a_long_one() -> None:
    assert trusted_s(1e-4) < 0.1
    assert trusted_s(0.2) < MOST_S


def nothing_fresh(_: Budget) -> int:
    return 0


def test_a_trial_that_takes_memory_needs_the_time_to_take_it() -> None:
    assert chunks_for(DEFAULT, 4, 1e10, 0.5)
    assert chunks_for(DEFAULT, 4, 1e10, 0.5, fresh_bytes=GIB // 2)
    assert not chunks_for(DEFAULT, 4, 1e10, 0.5, fresh_bytes=GIB)


def test_the_first_steps_grow_to_the_default_as_far_as_time_allows() -> None:
    steps = ladder(DEFAULT)
    assert [step.chunk_bytes for step in steps] == [64 << 10, 256 << 10, MIB, 4 * MIB]
    assert next_step(steps, 4, 1e10, MOST_S, nothing_fresh) == ([DEFAULT], 71)
    slow = next_step(steps, 4, 5e6, MOST_S, nothing_fresh)
    assert slow
    assert slow[0] == steps[1:]
    assert next_step(steps, 4, 1e3, MOST_S, nothing_fresh) is None


def test_the_probe_takes_no_more_than_its_part_of_the_pass() -> None:
    assert limit_s(1000 * GIB, GIB) == MOST_S
    assert limit_s(10 * GIB, GIB) == 0.5


def test_small_sets_lone_nodes_and_what_is_pinned_are_not_tuned() -> None:
    assert is_wanted(options_of(), 2, LEAST_BYTES)
    assert not is_wanted(options_of(), 2, LEAST_BYTES - 1)
    assert not is_wanted(options_of(), 1, LEAST_BYTES)
    assert not is_wanted(options_of("--bcast-tune=off"), 2, LEAST_BYTES)
    assert is_wanted(options_of("--bcast-tune=always"), 2, 1)
    assert not is_wanted(options_of("--bcast-tune=always"), 2, 0)
    assert not is_wanted(options_of("--bcast-tune=always", "--bcast-chunk=1MiB"), 2, 1)


@given(st.integers(1, 1 << 40))
def test_a_size_to_pin_is_read_back_as_it_was(size: int) -> None:
    assert parse_size(exact_size(size)) == size


def test_the_line_says_what_was_chosen_and_how_to_pin_it() -> None:
    trials = (trial(DEFAULT, GIB), trial(LARGE, 1.5 * GIB), trial(Budget(16 * MIB, 8, 8, GIB), 1.25 * GIB))
    assert tuned_line(Tuned(LARGE, DEFAULT, trials, 2.0 * GIB, 1.12)) == (
        "[tune] chunk 16MiB, window 4: broadcast 1.5 GiB/s (chunk 4MiB 1.0 GiB/s, window 8 1.2 GiB/s), "
        "write 2.0 GiB/s; took 1.1 s; pin with --bcast-chunk 16MiB --bcast-pipeline 4"
    )
    assert "too slow to be tuned" in tuned_line(Tuned(DEFAULT, DEFAULT, (), math.inf, 1.0))
    figures = tuned_figures(Tuned(LARGE, DEFAULT, trials, math.inf, 1.12))
    assert (figures["chunk_bytes"], figures["write_bytes_per_s"]) == (16 * MIB, None)
