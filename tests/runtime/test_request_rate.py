"""The bound on requests: found from what the account accepts, kept just below, gone when it is not needed."""

from __future__ import annotations

import pytest
from azcp_runtime.engine.request_rate import CUT, RETURN_S, RequestRate, adapted, rising

TICK_S = 0.1
LEAST = 8.0


class Cluster:
    """Ranks that would ask `demand` times a second, and an account; time passes in ticks.

    Attributes:
        accepted: requests accepted in each tick.
        refused: requests refused in each tick.
    """

    def __init__(self, demand: float) -> None:
        self.demand = demand
        self.state = RequestRate()
        self.accepted: list[float] = []
        self.refused: list[int] = []

    def turn(self, seconds: float, capacity: float, refused_share: float = 0.0) -> None:
        """Let time pass; the account accepts so many a second, and refuses a share whatever they ask."""
        for _ in range(round(seconds / TICK_S)):
            limit = self.demand if self.state.limit is None else min(self.demand, self.state.limit)
            accepted = min(limit * (1 - refused_share), capacity) * TICK_S
            self.accepted.append(accepted)
            self.refused.append(round(limit * TICK_S - accepted))
            recent = self.accepted[-10:]
            self.state = adapted(
                self.state,
                TICK_S,
                accepted_per_s=sum(recent) / len(recent) / TICK_S,
                refused=self.refused[-1],
                least=LEAST,
            )


@pytest.mark.parametrize("capacity", [20.0, 200.0, 2000.0, 20_000.0])
@pytest.mark.parametrize("excess", [1.5, 4.0, 50.0])
def test_an_account_that_takes_only_so_many_is_kept_busy_and_seldom_asked_in_vain(
    capacity: float, excess: float
) -> None:
    cluster = Cluster(capacity * excess)
    cluster.turn(30, capacity)
    settled = slice(20, None)
    assert sum(cluster.accepted[settled]) > 28 * capacity / 1.15
    assert sum(cluster.refused[settled]) < 0.1 * sum(cluster.accepted[settled])


def test_an_account_that_refuses_a_share_of_everything_is_asked_less_and_less() -> None:
    cluster = Cluster(1000)
    cluster.turn(10, 1000, refused_share=0.6)
    assert cluster.state.limit is not None
    assert cluster.state.limit < 1.1 * LEAST
    assert sum(cluster.refused[-20:]) < sum(cluster.refused[:5]) / 20


def test_the_bound_is_gone_some_seconds_after_the_last_refusal() -> None:
    cluster = Cluster(1000)
    cluster.turn(10, 1000, refused_share=0.6)
    cluster.turn(7, 1000)
    assert cluster.state == RequestRate()
    assert cluster.accepted[-1] == 1000 * TICK_S


def test_a_single_refusal_of_an_account_that_is_never_full_costs_little() -> None:
    cluster = Cluster(100)
    cluster.turn(2, 1000)
    cluster.turn(TICK_S, 90)
    cluster.turn(8, 1000)
    assert sum(cluster.accepted[-80:]) > 0.93 * 100 * 8


def test_without_a_refusal_there_is_no_bound() -> None:
    cluster = Cluster(5000)
    cluster.turn(60, 10_000)
    assert cluster.state == RequestRate()


def test_the_bound_waits_while_all_wait_for_their_retry_after() -> None:
    state = RequestRate(100.0, 110.0, 0.0, 0.0)
    for _ in range(600):
        state = adapted(state, TICK_S, accepted_per_s=0.0, refused=0, least=LEAST)
    assert state.limit == 100.0


def test_the_curve_begins_below_the_peak_rests_on_it_and_leaves_it() -> None:
    assert rising(0.0, 200.0) == pytest.approx(CUT * 200)
    assert rising(RETURN_S, 200.0) == 200
    curve = [rising(at / 10, 200.0) for at in range(60)]
    assert curve == sorted(curve)
    assert curve[-1] > 1000
