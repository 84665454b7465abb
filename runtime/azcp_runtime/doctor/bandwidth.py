"""How fast the nodes reach each other: a few broadcasts over the same lanes that a run uses."""

from __future__ import annotations

import time
from array import array
from dataclasses import dataclass
from typing import Final

from azcp_runtime.contract import BroadcastError
from azcp_runtime.doctor.check import Amount, Check, ok
from azcp_runtime.engine.slots import Slot
from azcp_runtime.mpi.backoff import Backoff
from azcp_runtime.mpi.ranks import Fabric, Ranks
from azcp_runtime.plan.chunks import Lane

NAME: Final = "fabric"
_MOST_ROOTS: Final = 4
_DEPTH: Final = 4
"""Broadcasts on their way in each lane, so that a nap between two looks costs no bandwidth."""

_LARGEST: Final = 16 << 20
_SMALLEST: Final = 256 << 10
_SENT_PER_ROUND: Final = 128 << 20
"""By each root, as far as the sizes allow."""

_LONGEST_S: Final = 1.0
_MOST_ROUNDS: Final = 32
_PATIENCE_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Trial:
    """What is sent.

    Attributes:
        roots: the nodes that send, spread over all.
        message_bytes: of each broadcast.
    """

    roots: tuple[int, ...]
    message_bytes: int


def plan_trial(nodes: int) -> Trial:
    """A trial that takes as long on a thousand nodes as on two: a root sends the message to each of them."""
    count = min(nodes, _MOST_ROOTS)
    size = max(_SMALLEST, min(_LARGEST, _SENT_PER_ROUND // nodes // _DEPTH))
    return Trial(tuple(index * nodes // count for index in range(count)), size)


def rounds_for(first_ns: int) -> int:
    """How many rounds fit the time, by what the slowest rank took for one."""
    return max(1, min(_MOST_ROUNDS, int(_LONGEST_S * 1e9 / max(1, first_ns))))


@dataclass(frozen=True, slots=True)
class Measured:
    """What a trial has shown, and how much of it this rank received."""

    check: Check
    received_bytes: int


def measure(ranks: Ranks) -> Measured | None:
    """What each root sends while every other node receives, as this node sees it; None on one node alone.

    To be called on every rank.

    Raises:
        BroadcastError: a broadcast did not end.
    """
    seat = ranks.seat
    if seat.nodes == 1:
        return None
    trial = plan_trial(seat.nodes)
    fabric = ranks.open_lanes(trial.roots)
    shape = Lane(0, trial.message_bytes, 0, 1, trial.message_bytes)
    slots = [Slot(lane, shape) for lane in range(len(trial.roots)) for _ in range(_DEPTH)]
    own = {lane for lane, root in enumerate(trial.roots) if root == seat.node}
    _round(fabric, slots, own)  # connections are made by the first message
    first = ranks.reduce(array("Q", [_round(fabric, slots, own)]), "max")[0]
    rounds = rounds_for(first)
    ranks.barrier()
    took = sum(_round(fabric, slots, own) for _ in range(rounds))
    sent = rounds * _DEPTH * (seat.nodes - 1) * trial.message_bytes * seat.rails
    check = ok(NAME, "each node sends", Amount(round(sent * 1e9 / max(1, took)), "bytes/s"))
    others = len(trial.roots) - len(own)
    return Measured(check, (2 + rounds) * _DEPTH * others * trial.message_bytes)


def _round(fabric: Fabric, slots: list[Slot], own: set[int]) -> int:
    """Nanoseconds until every broadcast of the others has arrived here.

    Its own is waited for, too, but not counted: it ends when the slowest receiver has it.
    """
    began = time.monotonic_ns()
    for slot in slots:
        fabric.post(slot.lane, slot)
    backoff, missing, arrived_ns = Backoff(), len(slots), 0
    expected = sum(slot.lane not in own for slot in slots)
    while missing:
        done = fabric.completed()
        missing -= len(done)
        expected -= sum(slot.lane not in own for slot in done)
        now = time.monotonic_ns()
        if not arrived_ns and not expected:
            arrived_ns = now
        if done:
            backoff.moved()
        elif now - began > _PATIENCE_S * 1e9:
            raise BroadcastError(
                f"a broadcast of {len(slots[0].message)} bytes did not end in {_PATIENCE_S:.0f} s",
                cause="a link that is up and carries nothing, or the wrong interface",
                remedy="see verbs devices and UCX_NET_DEVICES; try AZCP_ENV_UCX_TLS=tcp,self",
            )
        else:
            backoff.nap()
    return arrived_ns - began
