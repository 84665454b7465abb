"""Rank 0 divides the account: sums that hold while messages are late, and portions that follow the need."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import pytest
from azcp_runtime.engine.broker import Broker, Grant, Report

TOTAL = 1e6
TICK_S = 0.1


@dataclass
class Reader:
    """A rank that would read at `able` bytes per second until it has nothing left."""

    able: float
    left: float
    may_read: float
    grant: int = 0
    late: Grant | None = None

    def read(self) -> float:
        """What it reads in one tick."""
        read = min(self.able, self.may_read, self.left / TICK_S) * TICK_S
        self.left -= read
        if self.left < 1:
            self.left = self.may_read = 0.0
        return read

    def report(self, read: float) -> Report:
        """What it says of the last tick."""
        held = self.left > 0 and self.able > self.may_read
        return Report(self.grant, math.inf, self.may_read, 1.0, read / TICK_S, 1, 0, int(self.left), held)

    def obey(self) -> None:
        """The grant that was on its way has arrived."""
        if self.late:
            self.grant, self.may_read, self.late = self.late.number, self.late.bytes_per_s, None


def reading(readers: list[Reader], chance: random.Random, late_share: float) -> list[float]:
    """All bytes read in each tick until nothing is left, with messages that may be late."""
    broker, sums = Broker(len(readers), TOTAL), list[float]()
    while any(reader.left for reader in readers):
        read = [reader.read() for reader in readers]
        sums.append(sum(read))
        assert sum(reader.may_read for reader in readers) <= TOTAL * (1 + 1e-9)
        for rank, reader in enumerate(readers):
            if chance.random() >= late_share:
                reader.obey()
                broker.hear(rank, reader.report(read[rank]))
        for rank, grant in broker.grants(len(sums) * TICK_S).items():
            assert readers[rank].late is None
            readers[rank].late = grant
        assert len(sums) < 10_000
    return sums


@pytest.mark.parametrize("late_share", [0.0, 0.3, 0.7])
@pytest.mark.parametrize("seed", range(10))
def test_readers_never_exceed_the_rate_together_and_end_soon(seed: int, late_share: float) -> None:
    chance = random.Random(seed)
    count = chance.randint(1, 16)
    readers = [Reader(math.inf, chance.random() * 4e6, TOTAL / count) for _ in range(count)]
    needed_s = sum(reader.left for reader in readers) / TOTAL
    sums = reading(readers, chance, late_share)
    assert all(read <= TOTAL * TICK_S * (1 + 1e-9) for read in sums)
    assert len(sums) * TICK_S < 1.5 * needed_s + 3


def test_what_a_slow_reader_leaves_is_read_by_the_others() -> None:
    readers = [Reader(TOTAL / 100, 1e6, TOTAL / 4), *(Reader(math.inf, 20e6, TOTAL / 4) for _ in range(3))]
    sums = reading(readers, random.Random(1), 0.0)
    assert sum(sums[20:200]) > 0.9 * 180 * TICK_S * TOTAL


def test_a_rank_that_is_done_leaves_all_to_the_other() -> None:
    readers = [Reader(math.inf, 0.0, 0.0), Reader(math.inf, 20e6, TOTAL / 2)]
    sums = reading(readers, random.Random(1), 0.0)
    assert sum(sums[10:]) > 0.9 * (len(sums) - 11) * TICK_S * TOTAL


def report_of(accepted: int, refused: int, grant: Grant | None) -> Report:
    may_request = grant.requests_per_s if grant else math.inf
    return Report(grant.number if grant else 0, may_request, math.inf, 50.0, 0.0, accepted, refused, 9, True)


def test_refusals_at_one_rank_slow_every_rank_down_and_their_end_frees_all() -> None:
    broker, grants, accepted, refused = Broker(4, math.inf), dict[int, Grant](), 0, 0
    limits: list[float] = []
    for turn in range(150):
        accepted += 5
        refused += turn < 20
        for rank in range(4):
            broker.hear(rank, report_of(accepted, refused if rank == 2 else 0, grants.get(rank)))
        grants |= broker.grants(turn * TICK_S)
        limits.append(sum(grant.requests_per_s for grant in grants.values()))
        if turn == 15:
            assert set(grants) == {0, 1, 2, 3}
            assert limits[-1] < 200
            assert {round(grant.requests_per_s) for grant in grants.values()} == {round(limits[-1] / 4)}
    assert limits[-1] == math.inf


def test_a_rank_that_is_held_back_hears_now_and_then_that_others_are_served() -> None:
    broker, grants = Broker(2, math.inf), dict[int, Grant]()
    heard: list[int] = []
    for turn in range(100):
        broker.hear(0, report_of(turn, turn, grants.get(0)))
        broker.hear(1, report_of(0, turn, grants.get(1)))
        told = broker.grants(turn * TICK_S)
        grants |= told
        heard += [told[1].accepted] if 1 in told else []
    assert heard[-1] > 80
    assert heard == sorted(heard)


def test_messages_are_what_they_were() -> None:
    report = Report(7, math.inf, 1e9, 3.5, 2.5, 1 << 40, 12, 1 << 62, True)
    assert Report.unpacked(report.packed()) == report
    grant = Grant(8, 200.0, math.inf, 1 << 40)
    assert Grant.unpacked(grant.packed()) == grant
