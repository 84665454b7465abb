"""A rate of the whole cluster, divided among its ranks by what each can use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Need:
    """What one rank could do with a portion.

    Attributes:
        weight: how much it still has to do, in any unit that all share; 0 for nothing.
        most: the largest portion that it would use.
    """

    weight: float
    most: float


def portions(total: float, needs: Mapping[int, Need]) -> dict[int, float]:
    """Each rank's portion by its weight; what one cannot use goes to the others.

    All of ``total`` is given away unless nobody has a use for it.
    """
    given = dict.fromkeys(needs, 0.0)
    hungry = {rank: need for rank, need in needs.items() if need.weight > 0 and need.most > 0}
    left = total
    while hungry and left > 0:
        by_weight = left / sum(need.weight for need in hungry.values())
        sated = [rank for rank, need in hungry.items() if need.most <= need.weight * by_weight]
        if not sated:
            return given | {rank: need.weight * by_weight for rank, need in hungry.items()}
        for rank in sated:
            given[rank] = hungry.pop(rank).most
            left -= given[rank]
    return given


def next_step(total: float, wanted: Mapping[int, float], in_force: Mapping[int, float]) -> dict[int, float]:
    """What may be granted now on the way to ``wanted``, so that the sum never exceeds ``total``.

    A portion that shrinks does so at once. What grows may take only what is free while the others
    still spend what they were last known to have.

    Args:
        total: what all portions together may be.
        wanted: the portion that each rank shall end with.
        in_force: the most that each rank may be spending at this moment.
    """
    free = max(0.0, total - sum(in_force.values()))
    growth = {rank: max(0.0, share - in_force[rank]) for rank, share in wanted.items()}
    asked = sum(growth.values())
    part = min(1.0, free / asked) if asked else 0.0
    return {
        rank: min(share, in_force[rank] + growth[rank] * part) if growth[rank] else share
        for rank, share in wanted.items()
    }
