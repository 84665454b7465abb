"""Run by test_world.py under mpirun: what the ranks do together, checked on each of them."""

from __future__ import annotations

import mmap
import os
import random
import sys
import time
from array import array

from azcp_runtime.engine.slots import Slot
from azcp_runtime.mpi.backoff import Backoff
from azcp_runtime.mpi.ranks import Fabric
from azcp_runtime.mpi.world import World
from azcp_runtime.plan.chunks import Lane


def collectives(world: World) -> None:
    """Every collective of Ranks against what it must give."""
    seat = world.seat
    data = random.Random(1).randbytes(40_000_001)  # more than one piece
    assert world.share(data if seat.rank == 0 else None) == data
    assert world.share(b"" if seat.rank == 0 else None) == b""
    rows = world.gather(bytes([seat.rank]) * seat.rank)
    assert rows == ([bytes([rank]) * rank for rank in range(seat.size)] if seat.rank == 0 else [])
    values = array("Q", [seat.rank, 1 << 63, 0b1010 | seat.rank])
    assert list(world.reduce(values, "max"))[:2] == [seat.size - 1, 1 << 63]
    assert world.reduce(array("Q", [1]), "sum")[0] == seat.size
    assert world.reduce(array("Q", [6]), "and")[0] == world.reduce(array("Q", [6]), "or")[0] == 6
    assert world.reduce(array("Q"), "sum") == array("Q")
    world.barrier()
    world.barrier(node_only=True)


def arrivals(fabric: Fabric, count: int) -> list[Slot]:
    """So many completed broadcasts, in the order in which they end here."""
    backoff, found = Backoff(), list[Slot]()
    deadline = time.monotonic() + 60
    while len(found) < count:
        found += fabric.completed()
        backoff.nap()
        assert time.monotonic() < deadline, "a broadcast never ended"
    return found


def slow_lane(world: World) -> None:
    """Lane 1 arrives although the root of lane 0 has not sent: no lane waits for another."""
    seat = world.seat
    lanes = [Lane(owner, 4096, owner, 1, 1) for owner in range(2)]
    fabric = world.open_lanes([0, 1])
    slots = [Slot(index, lane) for index, lane in enumerate(lanes)]
    if seat.node == 1:
        slots[1].label(1, b"the-plan")
    for index in (0, 1):
        if seat.node != 0 or index == 1:
            fabric.post(index, slots[index])
    (first,) = arrivals(fabric, 1)
    assert first.lane == 1
    assert first.read_label(lanes[1], b"the-plan") == 1
    world.barrier()
    if seat.node == 0:
        slots[0].label(0, b"the-plan")
        fabric.post(0, slots[0])
    (second,) = arrivals(fabric, 1)
    assert second.read_label(lanes[0], b"the-plan") == 0


def big(world: World, size: int) -> None:
    """One broadcast of any size, checked at both ends and at every GiB boundary."""

    class BigSlot(Slot):
        def __init__(self) -> None:
            self.memory = mmap.mmap(-1, size)
            self.message = memoryview(self.memory)
            self.lane = 0
            self.calls = 0

    slot = BigSlot()
    places = sorted({0, size - 1, *(at + step for at in range(1 << 30, size, 1 << 30) for step in (-1, 0))})
    if world.seat.rank == 0:
        for number, place in enumerate(places):
            slot.memory[place] = number + 1
    fabric = world.open_lanes([0])
    fabric.post(0, slot)
    assert arrivals(fabric, 1) == [slot]
    assert [slot.memory[place] for place in places] == list(range(1, len(places) + 1))


if __name__ == "__main__":
    here = World(os.environ, 60.0, 60.0)
    if sys.argv[1] == "collectives":
        collectives(here)
    elif sys.argv[1] == "slow-lane":
        slow_lane(here)
    else:
        big(here, int(sys.argv[1]))
    print(f"rank {here.seat.rank} of {here.seat.size} is right")
    here.leave()
