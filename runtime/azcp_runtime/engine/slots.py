"""Page-aligned buffers, each of which holds one chunk from its fetch to its last write."""

from __future__ import annotations

import mmap
import struct
from typing import Final

from azcp_runtime.contract import BroadcastError
from azcp_runtime.plan.chunks import Lane, slot_bytes

RUN_BYTES: Final = 8
"""Of the plan's digest, in every message: tells this run's from any other's."""

_TRAILER: Final = struct.Struct(f"<Q{RUN_BYTES}s")


class Slot:
    """One buffer of a lane.

    Attributes:
        lane: index of its lane among the rail's.
        payload: the extents of a chunk.
        message: the payload and the trailer, as it is broadcast.
        chunk: which chunk it holds now.
        pending: reads or writes of it that are not done.
        calls: MPI calls of its broadcast that are on their way.
        sent: whether its broadcast has ended.
    """

    __slots__ = (
        "_memory",
        "_payload_bytes",
        "calls",
        "chunk",
        "lane",
        "message",
        "payload",
        "pending",
        "sent",
    )

    def __init__(self, lane: int, shape: Lane) -> None:
        # An anonymous map: page-aligned for O_DIRECT, and not resident before it is touched.
        self._memory = mmap.mmap(-1, slot_bytes(shape.payload_bytes))
        self._payload_bytes = shape.payload_bytes
        view = memoryview(self._memory)
        self.lane = lane
        self.payload = view[: shape.payload_bytes]
        self.message = view[: shape.message_bytes]
        self.chunk = -1
        self.pending = 0
        self.calls = 0
        self.sent = True

    def label(self, chunk: int, run: bytes) -> None:
        """Say in the trailer which chunk this is, and of which plan."""
        self.chunk = chunk
        _TRAILER.pack_into(self._memory, self._payload_bytes, chunk, run)

    def read_label(self, lane: Lane, run: bytes) -> int:
        """The chunk that arrived.

        Raises:
            BroadcastError: the message is not one of this lane and plan.
        """
        chunk: int
        plan: bytes
        chunk, plan = _TRAILER.unpack_from(self._memory, self._payload_bytes)
        if plan != run or not lane.first_chunk <= chunk < lane.first_chunk + lane.chunks:
            raise BroadcastError(
                f"rank {lane.owner} sent something that is not in the plan",
                cause="another run on the same fabric, or damaged memory",
            )
        self.chunk = chunk
        return chunk
