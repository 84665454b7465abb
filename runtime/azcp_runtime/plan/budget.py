"""What a rank may use: how large a chunk is, how many slots each lane gets, how many connections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from azcp_runtime.contract import PlanError
from azcp_runtime.contract.units import format_size
from azcp_runtime.plan.chunks import Plan, slot_bytes

SMALLEST_CHUNK: Final = 256 << 10
LARGEST_AUTO_CHUNK: Final = 64 << 20
_FIRST_CHUNK: Final = 1 << 20

CHUNKS_PER_SHARE: Final = 128
"""A chunk is broadcast only when it is whole. So that the bytes still in flight when the last fetch
ends stay near a hundredth of a rank's share, the share is cut into this many chunks."""

_OWN_SLOTS: Final = 4
_LANE_SLOTS: Final = 2
_MOST_OWN_SLOTS: Final = 8
_SHARE_PER_SLOTS: Final = 32

_CONNECTIONS_PER_CPU: Final = 16
_MOST_CONNECTIONS_PER_NODE: Final = 300
_FEWEST_CONNECTIONS: Final = 4


@dataclass(frozen=True, slots=True)
class Budget:
    """What a rank allocates.

    Attributes:
        chunk_bytes: the most one chunk carries.
        own_slots: slots of the lane on which this rank is root.
        lane_slots: slots of each other lane, which is also the depth of its pipeline.
        memory_bytes: all of it for a rank that owns a lane.
    """

    chunk_bytes: int
    own_slots: int
    lane_slots: int
    memory_bytes: int


def make_budget(
    memory: int, lanes: int, share: int, *, chunk: int | None = None, depth: int | None = None
) -> Budget:
    """Find chunk size and slots.

    Args:
        memory: bytes that a rank may hold in slots.
        lanes: owners per rail, 1 or more.
        share: bytes of the largest owner.
        chunk: --bcast-chunk; found when None.
        depth: --bcast-pipeline; found when None.

    Raises:
        PlanError: the options ask for more than memory holds.
    """
    # No chunk is larger than what any owner has to send.
    largest = max(1, share)
    size = min(chunk or _auto_chunk(share), largest)
    if chunk is None:
        while size > SMALLEST_CHUNK and _need(size, lanes, _OWN_SLOTS, depth or _LANE_SLOTS) > memory:
            size //= 2
    for lane_slots in [depth] if depth else [_LANE_SLOTS, 1]:
        own = max(lane_slots, _OWN_SLOTS)
        while own > lane_slots and _need(size, lanes, own, lane_slots) > memory:
            own -= 1
        if _need(size, lanes, own, lane_slots) <= memory:
            return _deepened(memory, lanes, share, size, own, lane_slots, fixed=depth is not None)
    needed = _need(size, lanes, depth or 1, depth or 1)
    raise PlanError(
        f"{lanes} lanes of {depth or 1} chunks of {format_size(size)} need {format_size(needed)}, "
        f"--memory is {format_size(memory)}",
        remedy="raise --memory, or lower --bcast-chunk, --bcast-pipeline or --download-ranks",
    )


def most_connections(own_cpus: int, machine_cpus: int, quota_cpus: float, rails: int) -> int:
    """How many connections a rank may use: its part of 16 for each CPU and 300 for each node.

    Args:
        own_cpus: CPUs that the rank may run on; where it is bound to some, they are its part.
        machine_cpus: CPUs of the node.
        quota_cpus: CPUs that the ranks of the node may use at a time, infinite where there is no limit.
        rails: ranks on the node.
    """
    part = own_cpus if own_cpus < machine_cpus else machine_cpus / rails
    by_cpu = int(_CONNECTIONS_PER_CPU * min(part, quota_cpus / rails))
    return max(_FEWEST_CONNECTIONS, min(by_cpu, _MOST_CONNECTIONS_PER_NODE // rails))


def _auto_chunk(share: int) -> int:
    wanted = max(_FIRST_CHUNK, min(LARGEST_AUTO_CHUNK, share // CHUNKS_PER_SHARE))
    return 1 << (wanted.bit_length() - 1)


def _need(size: int, lanes: int, own_slots: int, lane_slots: int) -> int:
    return slot_bytes(size) * (own_slots + (lanes - 1) * lane_slots)


def _deepened(
    memory: int, lanes: int, share: int, size: int, own: int, lane_slots: int, *, fixed: bool
) -> Budget:
    # Where lanes are few, a slot more in each costs little and keeps a fast fabric busy.
    while not fixed and lane_slots < _OWN_SLOTS and _need(size, lanes, own, lane_slots + 1) <= memory // 2:
        lane_slots += 1
    # More fetches in flight, as long as they stay a few percent of the share.
    while (
        own < _MOST_OWN_SLOTS
        and own * size * _SHARE_PER_SLOTS < share
        and _need(size, lanes, own + 1, lane_slots) <= memory
    ):
        own += 1
    return Budget(size, own, lane_slots, _need(size, lanes, own, lane_slots))


def memory_of(plan: Plan, rails: int, own_slots: int, lane_slots: int) -> int:
    """Bytes of slots that the rank with the most of them allocates."""
    most = 0
    for rail in range(rails):
        slots = [slot_bytes(lane.payload_bytes) for lane in plan.lanes if lane.owner % rails == rail]
        if slots:
            most = max(most, lane_slots * sum(slots) + (own_slots - lane_slots) * max(slots))
    return most
