"""A secret that rank 0 holds for all, without MPI: what is sent, to whom, and how often."""

from __future__ import annotations

import math
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

import pytest
from azcp_runtime.azure.relay import Keeper, Relayed, Send
from azure.core.exceptions import ClientAuthenticationError

from tests.lab.waiting import wait_until

THREADS: Final = 16
DEADLINE_S: Final = 30.0


@dataclass
class Source:
    """What rank 0 holds: the next secret of a list whenever one was refused or is due."""

    secrets: list[str]
    due_in_s: float = math.inf
    refused: list[str] = field(default_factory=list)
    fails: bool = False

    def current(self) -> str:
        """The first one; the next one where it is due."""
        if self.fails:
            raise ClientAuthenticationError("the identity is gone")
        if self.due_in_s <= 0:
            self.due_in_s = math.inf
            del self.secrets[0]
        return self.secrets[0]

    def another(self, refused: str, tenant: str = "") -> str:
        """The next one, if there is one."""
        if self.fails:
            raise ClientAuthenticationError("the identity is gone")
        self.refused.append(refused + tenant)
        if len(self.secrets) > 1:
            del self.secrets[0]
        return self.secrets[0]

    def left_s(self) -> float:
        """Long."""
        return 1000.0

    def renew_in_s(self) -> float:
        """As it is told."""
        return self.due_in_s


class Cluster:
    """Rank 0 with its keeper and the other ranks, joined by plain calls."""

    def __init__(self, source: Source, ranks: int = 3, left_s: float = 1000.0) -> None:
        self.wishes: Counter[int] = Counter()
        self.keeper = Keeper(source, self._from_root, source.secrets[0])
        self.ranks = {
            rank: Relayed(self._to_root(rank), source.secrets[0], left_s) for rank in range(1, ranks)
        }
        self.keeper.start()

    def _from_root(self, message: bytes, to: int | None) -> None:
        for rank in self.ranks if to is None else [to]:
            # In a thread, as a message takes its time: the keeper must not wait for it.
            threading.Thread(target=self.ranks[rank].take, args=(message, 0)).start()

    def _to_root(self, rank: int) -> Send:
        def send(message: bytes, to: int | None) -> None:
            assert to == 0
            self.wishes[rank] += 1
            self.keeper.take(message, rank)

        return send


def test_a_refused_secret_is_replaced_for_all_ranks_by_one_wish_of_each() -> None:
    source = Source(["a", "b"])
    cluster = Cluster(source)
    with ThreadPoolExecutor(THREADS) as threads:
        found = list(
            threads.map(lambda number: cluster.ranks[1 + number % 2].another("a", "t"), range(THREADS))
        )
    assert found == ["b"] * THREADS
    assert source.refused == ["at"]
    assert all(wishes == 1 for wishes in cluster.wishes.values())


def test_a_new_secret_reaches_ranks_that_have_not_asked() -> None:
    cluster = Cluster(Source(["a", "b"], due_in_s=0.0))
    wait_until(lambda: [rank.current() for rank in cluster.ranks.values()] == ["b", "b"], DEADLINE_S, "news")
    assert not cluster.wishes


def test_a_refusal_of_an_older_secret_is_answered_on_the_spot() -> None:
    source = Source(["a", "b"])
    cluster = Cluster(source)
    assert cluster.ranks[1].another("a") == "b"
    assert cluster.ranks[1].another("a") == "b"
    wait_until(lambda: cluster.ranks[2].current() == "b", DEADLINE_S, "the other rank has it too")
    assert cluster.ranks[2].another("a") == "b"
    assert source.refused == ["a"]


def test_a_refused_secret_without_a_successor_is_given_again_and_not_asked_for_by_every_thread() -> None:
    source = Source(["a"])
    cluster = Cluster(source)
    assert [cluster.ranks[1].another("a") for _ in range(5)] == ["a"] * 5
    assert source.refused == ["a"]


def test_a_secret_that_has_ended_is_waited_for() -> None:
    cluster = Cluster(Source(["a", "b"], due_in_s=0.0), left_s=0.0)
    assert cluster.ranks[1].current() == "b"


def test_why_there_is_no_other_is_told_to_every_thread() -> None:
    source = Source(["a"], fails=True)
    cluster = Cluster(source, left_s=0.0)
    for _ in range(3):
        with pytest.raises(ClientAuthenticationError, match="the identity is gone"):
            cluster.ranks[1].current()
        with pytest.raises(ClientAuthenticationError, match="the identity is gone"):
            cluster.ranks[2].another("a")
    assert (cluster.wishes[1], cluster.wishes[2]) == (1, 1)
