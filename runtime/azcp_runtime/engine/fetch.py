"""Fetcher threads: they fill the slots of this rank's own lane from the source.

Blocks are handed out chunk by chunk, so that all threads work on the oldest chunk first: it is
whole, and can be broadcast, as early as possible, and little is in flight when the last one ends.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from azcp_runtime.engine.slots import Slot
from azcp_runtime.plan.chunks import Lane, Plan

_SMALL_RUN: Final = 16
"""Small files a thread takes at a time; a lock for each would cost more than the read."""


class Source(Protocol):
    """Where the bytes of files come from."""

    @property
    def arrived_bytes(self) -> int:
        """Bytes so far, of unfinished reads too."""

    def shown(self, file: int) -> str:
        """A file's name for messages."""

    def read(self, file: int, offset: int, into: memoryview) -> None:
        """Fill ``into`` from a file of the listing; raises DownloadError."""


@dataclass(frozen=True, slots=True)
class Block:
    """One read: bytes of a file and where they go."""

    slot: Slot
    file: int
    offset: int
    view: memoryview


@dataclass(slots=True)
class FetchTotals:
    """What a rank's fetchers did; times are of a monotonic clock."""

    bytes: int = 0
    began: float = 0.0
    ended: float = 0.0
    cpu_s: float = 0.0


class Fetchers:
    """The threads and the queue they share.

    Args:
        plan: the plan.
        lane: this rank's own lane.
        slots: its slots.
        source: where bytes come from.
        threads: how many reads at a time.
        block_bytes: the most one read asks for.
        parallel_files: how many different files are read at a time; None for no bound.
        fail: takes the error of a thread; the run ends.
    """

    def __init__(
        self,
        plan: Plan,
        lane: Lane,
        slots: list[Slot],
        source: Source,
        *,
        threads: int,
        block_bytes: int,
        parallel_files: int | None,
        fail: Callable[[Exception], None],
    ) -> None:
        self._plan = plan
        self._total_bytes = lane.total_bytes
        self._chunks = deque(range(lane.first_chunk, lane.first_chunk + lane.chunks))
        self._free = deque(slots)
        self._blocks: deque[list[Block]] = deque()
        self._source = source
        self._block_bytes = block_bytes
        self._parallel_files = parallel_files
        self._active: dict[int, int] = {}
        self._fail = fail
        self._changed = threading.Condition()
        self.whole: deque[Slot] = deque()
        self.totals = FetchTotals()
        self._threads = [
            threading.Thread(target=self._work, name=f"fetch-{number}", daemon=True)
            for number in range(threads)
        ]

    def start(self) -> None:
        """Start the threads."""
        self.totals.began = self.totals.ended = time.monotonic()
        for thread in self._threads:
            thread.start()

    def give_back(self, slot: Slot) -> None:
        """A slot whose chunk has been sent and written may take the next one."""
        with self._changed:
            self._free.append(slot)
            self._changed.notify()  # one thread cuts the next chunk and wakes as many as it has reads

    @property
    def arrived_bytes(self) -> int:
        """Bytes that have come in, of unfinished reads too."""
        return self._source.arrived_bytes

    @property
    def left_bytes(self) -> int:
        """Bytes of the lane that are not read yet."""
        return self._total_bytes - self.totals.bytes

    def reading(self) -> list[str]:
        """Names of the files that are being read now."""
        with self._changed:
            return [self._source.shown(file) for file in self._active]

    def join(self) -> None:
        """Wait for the threads, which end when every chunk has been read."""
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        began = time.thread_time()
        try:
            while run := self._next():
                for block in run:
                    self._source.read(block.file, block.offset, block.view)
                self._done(run)
        except Exception as error:  # noqa: BLE001 - the main thread raises it
            self._fail(error)
        finally:
            with self._changed:
                self.totals.cpu_s += time.thread_time() - began

    def _next(self) -> list[Block] | None:
        with self._changed:
            while True:
                if not self._blocks and self._chunks and self._free:
                    self._cut(self._free.popleft(), self._chunks.popleft())
                if self._blocks and self._may_read(self._blocks[0]):
                    run = self._blocks.popleft()
                    for block in run:
                        self._active[block.file] = self._active.get(block.file, 0) + 1
                    return run
                if not self._blocks and not self._chunks:
                    self._changed.notify_all()
                    return None
                self._changed.wait()

    def _may_read(self, run: list[Block]) -> bool:
        limit = self._parallel_files
        if limit is None or not self._active:
            return True
        return len(self._active.keys() | {block.file for block in run}) <= limit

    def _cut(self, slot: Slot, chunk: int) -> None:
        """Cut a chunk into reads; ``pending`` counts those that are not done."""
        slot.chunk = chunk
        run: list[Block] = []
        plan, most = self._plan, _SMALL_RUN if self._parallel_files is None else 1
        for extent in plan.extents(chunk):
            start, length, offset = plan.slot[extent], plan.length[extent], plan.offset[extent]
            for at in range(0, length, self._block_bytes):
                size = min(self._block_bytes, length - at)
                view = slot.payload[start + at : start + at + size]
                run.append(Block(slot, plan.file[extent], offset + at, view))
                if size >= self._block_bytes // _SMALL_RUN or len(run) >= most:
                    self._blocks.append(run)
                    run = []
        if run:
            self._blocks.append(run)
        slot.pending = len(self._blocks)
        self._changed.notify(len(self._blocks) - 1)

    def _done(self, run: list[Block]) -> None:
        slot = run[0].slot
        with self._changed:
            self.totals.bytes += sum(len(block.view) for block in run)
            self.totals.ended = time.monotonic()
            for block in run:
                self._active[block.file] -= 1
                if not self._active[block.file]:
                    del self._active[block.file]
            slot.pending -= 1
            if not slot.pending:
                self.whole.append(slot)
            if self._parallel_files is not None:
                self._changed.notify_all()
