"""The gate before the source: rates that hold, changes that act at once, connections no more than help."""

from __future__ import annotations

import random
import threading
import time
from itertools import pairwise

import pytest
from azcp_runtime.engine.connections import Connections, tried
from azcp_runtime.engine.gate import Gate
from azcp_runtime.engine.pace import CATCH_UP_S, Pace

from tests.lab.waiting import wait_until

DEADLINE_S = 20.0


def passages(pace: Pace, sizes: list[float], rate_changes: dict[int, float]) -> list[tuple[float, float]]:
    """When each amount passes, one after the other, on a clock of its own."""
    now, passed = 100.0, list[tuple[float, float]]()
    for number, size in enumerate(sizes):
        if number in rate_changes:
            pace.change(now, rate_changes[number])
        now += pace.wait_s(now)
        pace.take(now, size)
        passed.append((now, size))
    return passed


@pytest.mark.parametrize("seed", range(50))
def test_no_window_of_time_sees_more_than_the_rate_and_one_amount(seed: int) -> None:
    chance = random.Random(seed)
    sizes = [chance.random() * 50 for _ in range(100)]
    passed = passages(Pace(100.0), sizes, {})
    for first in range(0, 100, 7):
        for last in range(first, 100, 5):
            seconds = passed[last][0] - passed[first][0]
            amount = sum(size for _, size in passed[first : last + 1])
            assert amount <= 100.0 * (seconds + CATCH_UP_S) + 50 + 1e-6


def test_the_rate_is_used_to_the_full() -> None:
    passed = passages(Pace(100.0), [10.0] * 101, {})
    assert passed[-1][0] - passed[0][0] == pytest.approx(10.0)


def test_a_change_acts_on_what_is_already_owed() -> None:
    passed = passages(Pace(10.0), [10.0, 10.0, 10.0], {1: 100.0, 2: 10.0})
    gaps = [later - earlier for (earlier, _), (later, _) in pairwise(passed)]
    assert gaps == pytest.approx([0.1, 1.0])


def test_nothing_passes_at_a_rate_of_zero_and_all_of_it_without_one() -> None:
    pace = Pace(0.0)
    assert pace.wait_s(1.0) == float("inf")
    pace.change(2.0, None)
    assert pace.wait_s(2.0) == 0


def test_a_thread_that_waits_at_a_rate_of_zero_goes_on_when_it_is_raised() -> None:
    gate = Gate(threading.Event(), 0.0)
    thread = threading.Thread(target=gate.enter, args=(1000,), daemon=True)
    thread.start()
    wait_until(lambda: gate.flow(time.monotonic()).held, DEADLINE_S, "the thread is held back")
    assert thread.is_alive()
    gate.limit(None, 1e9)
    thread.join(DEADLINE_S)
    assert not thread.is_alive()


def test_the_end_of_the_run_ends_every_wait() -> None:
    stop = threading.Event()
    gate = Gate(stop, 0.0)
    gate.open(1, is_fixed=True)
    threads = [threading.Thread(target=gate.enter, args=(1,), daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    stop.set()
    for thread in threads:
        thread.join(DEADLINE_S)
        assert not thread.is_alive()


def test_no_more_requests_are_on_their_way_than_there_are_connections() -> None:
    gate = Gate(threading.Event())
    gate.open(3, is_fixed=True)
    lock, inside, most = threading.Lock(), 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(200):
            gate.enter(1)
            with lock:
                inside += 1
                most = max(most, inside)
            with lock:
                inside -= 1
            gate.leave(accepted=True)

    threads = [threading.Thread(target=work) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
    assert most <= 3
    assert gate.flow(time.monotonic()).refused == 0


def test_refusals_are_counted_and_other_failures_are_not() -> None:
    gate = Gate(threading.Event())
    for accepted in (True, False, None, False):
        gate.enter(1)
        gate.leave(accepted=accepted)
    assert gate.flow(time.monotonic()).refused == 2


@pytest.mark.parametrize("enough", [4, 10, 40, 100])
def test_connections_fall_to_those_that_help_and_stay_there(enough: int) -> None:
    chance = random.Random(enough)
    state, rates = Connections.all_of(100), list[float]()
    for _ in range(200):
        rate = min(state.count, enough) * 10e6 * (1 + chance.uniform(-0.01, 0.01))
        rates.append(rate)
        state = tried(state, rate, fewest=4, most=100)
    assert sum(rates[-100:]) / 100 > 0.9 * min(100, enough) * 10e6
    assert state.count <= max(8, 1.3 * enough)


def test_connections_come_back_when_the_network_has_room_again() -> None:
    state = Connections.all_of(100)
    for _ in range(60):
        state = tried(state, min(state.count, 10) * 10e6, fewest=4, most=100)
    for _ in range(60):
        state = tried(state, min(state.count, 80) * 10e6, fewest=4, most=100)
    assert state.count > 40


def test_the_number_stays_within_its_bounds() -> None:
    chance = random.Random(5)
    state = Connections.all_of(32)
    for _ in range(500):
        state = tried(state, chance.random() * 1e9, fewest=4, most=32)
        assert 4 <= state.count <= 32
    assert tried(Connections.all_of(2), 1.0, fewest=4, most=2).count == 2
