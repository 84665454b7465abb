"""A rate is divided by need: never more than all of it is given, and nothing that one could use is left."""

from __future__ import annotations

import math
import random

import pytest
from azcp_runtime.engine.portions import Need, next_step, portions

TOTAL = 100.0


def random_needs(seed: int) -> dict[int, Need]:
    """Needs of up to 12 ranks; some have nothing left, some are slow, some would take everything."""
    chance = random.Random(seed)
    return {
        rank: Need(chance.choice([0.0, 1.0, chance.random() * 50]), chance.choice([0.0, 5.0, 60.0, math.inf]))
        for rank in range(chance.randint(1, 12))
    }


@pytest.mark.parametrize("seed", range(200))
def test_portions_give_away_all_that_can_be_used_and_no_more(seed: int) -> None:
    needs = random_needs(seed)
    given = portions(TOTAL, needs)
    usable = sum(need.most for need in needs.values() if need.weight)
    assert sum(given.values()) == pytest.approx(min(TOTAL, usable))
    assert all(given[rank] <= need.most + 1e-9 for rank, need in needs.items())
    assert all(given[rank] == 0 for rank, need in needs.items() if not need.weight)


def test_what_an_idle_rank_does_not_use_goes_to_the_busy_ones_by_what_they_have_left() -> None:
    needs = {0: Need(0, math.inf), 1: Need(10, 5.0), 2: Need(20, math.inf), 3: Need(10, math.inf)}
    assert portions(95.0, needs) == {0: 0.0, 1: 5.0, 2: 60.0, 3: 30.0}


def test_nobody_in_need_is_given_nothing() -> None:
    assert portions(TOTAL, {}) == {}
    assert portions(TOTAL, {0: Need(0, math.inf)}) == {0: 0.0}


@pytest.mark.parametrize("seed", range(200))
def test_a_step_never_lets_the_sum_exceed_the_total_whichever_grants_have_arrived(seed: int) -> None:
    chance = random.Random(seed)
    ranks = range(chance.randint(1, 12))
    in_force = {rank: TOTAL / len(ranks) for rank in ranks}
    for _ in range(20):
        wanted = portions(
            TOTAL, {rank: Need(chance.random(), chance.choice([3.0, math.inf])) for rank in ranks}
        )
        granted = next_step(TOTAL, wanted, in_force)
        assert sum(max(in_force[rank], granted[rank]) for rank in ranks) <= TOTAL * (1 + 1e-9)
        late = {rank for rank in ranks if chance.random() < 0.3}
        in_force = {
            rank: max(in_force[rank], granted[rank]) if rank in late else granted[rank] for rank in ranks
        }


def test_steps_reach_what_is_wanted_once_the_others_have_let_go() -> None:
    wanted, in_force = {0: 0.0, 1: 100.0}, {0: 50.0, 1: 50.0}
    first = next_step(TOTAL, wanted, in_force)
    assert first == {0: 0.0, 1: 50.0}
    assert next_step(TOTAL, wanted, first) == wanted
