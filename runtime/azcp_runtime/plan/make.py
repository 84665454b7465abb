"""The whole plan in one call: pieces, owners, budget, chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from azcp_runtime.plan.budget import Budget, make_budget, memory_of
from azcp_runtime.plan.chunks import Plan, aligned, lay_out
from azcp_runtime.plan.presence import AZURE, SKIP, Segment
from azcp_runtime.plan.shards import (
    NO_SEGMENTS,
    Cluster,
    assign,
    auto_shard_bytes,
    cut,
    default_pack_bytes,
)


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What a plan depends on besides the files.

    Attributes:
        cluster: nodes, rails and downloaders.
        memory_bytes: a rank's budget for slots.
        shard_bytes: --shard-size; found when None.
        file_shards: --file-shards: as many ranges as the largest file is cut into.
        chunk_bytes: --bcast-chunk; found when None.
        depth: --bcast-pipeline; found when None.
    """

    cluster: Cluster
    memory_bytes: int
    shard_bytes: int | None = None
    file_shards: int | None = None
    chunk_bytes: int | None = None
    depth: int | None = None


@dataclass(frozen=True, slots=True)
class Demand:
    """What the buffers of a rank depend on.

    Attributes:
        lanes: the most lanes that any rail can have.
        share: bytes of an owner.
    """

    lanes: int
    share: int

    def budget(self, memory: int, chunk: int | None, depth: int | None) -> Budget:
        """The budget for this chunk and depth; what is None is found.

        Raises:
            PlanError: the memory does not hold it.
        """
        return make_budget(memory, self.lanes, self.share, chunk=chunk, depth=depth)


def demand(
    sizes: Sequence[int],
    origin: Sequence[int],
    cluster: Cluster,
    segments: Mapping[int, Sequence[Segment]] = NO_SEGMENTS,
) -> Demand:
    """That of a plan, arguments as for ``make_plan``."""
    total = sum(_moving(sizes, origin, segments))
    return Demand(_lanes(cluster, origin, segments), total // cluster.download_ranks)


def make_plan(
    sizes: Sequence[int],
    origin: Sequence[int],
    request: PlanRequest,
    segments: Mapping[int, Sequence[Segment]] = NO_SEGMENTS,
) -> tuple[Plan, Budget]:
    """The plan and the memory it takes.

    Args:
        sizes: bytes per file of the listing.
        origin: per file, as in Diff.
        request: the rest.
        segments: as in Diff.

    Raises:
        PlanError: it does not fit the memory.
    """
    cluster = request.cluster
    moving = list(_moving(sizes, origin, segments))
    total, owners = sum(moving), cluster.download_ranks
    need = Demand(_lanes(cluster, origin, segments), total // owners)
    guess = need.budget(request.memory_bytes, request.chunk_bytes, request.depth)
    shard_bytes = _shard_bytes(request, moving, total, guess.chunk_bytes)
    pack_bytes = default_pack_bytes(total, owners, guess.chunk_bytes)
    pieces = cut(sizes, origin, shard_bytes, pack_bytes, segments)
    plan = lay_out(pieces, assign(pieces, cluster), sizes, guess.chunk_bytes)
    memory = memory_of(plan, cluster.rails, guess.own_slots, guess.lane_slots)
    return plan, replace(guess, memory_bytes=memory)


def _moving(
    sizes: Sequence[int], origin: Sequence[int], segments: Mapping[int, Sequence[Segment]]
) -> Iterator[int]:
    """Bytes that move of each file of which any do."""
    if not segments:  # a million files, most often
        yield from (size for size, where in zip(sizes, origin, strict=True) if where != SKIP)
        return
    for file, (size, where) in enumerate(zip(sizes, origin, strict=True)):
        if where != SKIP:
            parts = segments.get(file, (Segment(0, size, where),))
            yield sum(each.end - each.start for each in parts if each.origin != SKIP)


def _lanes(cluster: Cluster, origin: Sequence[int], segments: Mapping[int, Sequence[Segment]]) -> int:
    """The most lanes that any rail can have: its downloaders, and the holders of what peers send."""
    origins = set(origin) | {each.origin for parts in segments.values() for each in parts}
    holders = origins - {SKIP, AZURE}
    per_rail = [holders.copy() for _ in range(cluster.rails)]
    if AZURE in origins:
        for seat in cluster.downloaders():
            per_rail[seat % cluster.rails].add(seat // cluster.rails)
    return max(1, *(len(nodes) for nodes in per_rail))


def _shard_bytes(request: PlanRequest, moving: Sequence[int], total: int, chunk: int) -> int:
    if request.shard_bytes:
        return aligned(request.shard_bytes)
    if request.file_shards and moving:
        return aligned(max(1, -(-max(moving) // request.file_shards)))
    return auto_shard_bytes(total, request.cluster.download_ranks, aligned(chunk))
