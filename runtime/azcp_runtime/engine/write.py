"""Writer threads: they write chunks from the slots in which they were fetched or received."""

from __future__ import annotations

import queue
import threading
import time
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from azcp_runtime.disk.commit import Committer
from azcp_runtime.disk.descriptors import Descriptors
from azcp_runtime.disk.journal import Journal
from azcp_runtime.disk.kept import Kept
from azcp_runtime.disk.tree import Tree
from azcp_runtime.engine.slots import Slot
from azcp_runtime.plan.chunks import Plan, aligned
from azcp_runtime.plan.shards import SMALL_FILE_BYTES

_PART_BYTES: Final = 8 << 20
"""Larger extents are shared out among the writers, within one file too."""

_SMALL_RUN: Final = 32
"""Small files a writer takes at a time."""


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes of a slot that go to one place in one file."""

    file: int
    offset: int
    start: int
    length: int


@dataclass(slots=True)
class WriteTotals:
    """What a rank's writers did."""

    bytes: int = 0
    cpu_s: float = 0.0


class Writers:
    """The threads, their queue, and what is still missing of each file on this rank.

    Args:
        plan: the plan.
        sizes: bytes per file of the listing.
        missing: per file the bytes that come through this rank's rail; 0 where the node has it.
        shared: files of which other rails bring a part.
        kept: ranges of files that the node has.
        tree: the destination.
        committer: takes files that are whole; not the shared ones, of which no rank knows it alone.
        journal: told of what is written of large files.
        threads: how many writers.
        fail: takes the error of a thread; the run ends.
    """

    def __init__(
        self,
        plan: Plan,
        sizes: Sequence[int],
        missing: array[int],
        tree: Tree,
        committer: Committer,
        *,
        shared: frozenset[int] = frozenset(),
        kept: Kept | None = None,
        journal: Journal | None = None,
        threads: int,
        fail: Callable[[Exception], None],
    ) -> None:
        self._plan = plan
        self._sizes = sizes
        self._missing = missing
        self._shared = shared
        self._kept = kept if kept and kept.ranges else None
        self._journal = journal
        self._tree = tree
        self._committer = committer
        self._fail = fail
        self._descriptors = Descriptors(tree)
        self._jobs: queue.SimpleQueue[tuple[Slot, list[Part]] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._writing: dict[int, tuple[int, int]] = {}
        self.written: deque[Slot] = deque()
        self.totals = WriteTotals()
        self._threads = [
            threading.Thread(target=self._work, name=f"write-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, slot: Slot) -> None:
        """Write what the slot's chunk holds for this node; the slot comes back in ``written``."""
        jobs = self._jobs_of(slot.chunk)
        slot.pending = len(jobs)
        if not jobs:
            self.written.append(slot)
        for parts in jobs:
            self._jobs.put((slot, parts))

    def writing(self) -> list[tuple[int, int]]:
        """Lane and file of each write that is under way."""
        return sorted(set(self._writing.copy().values()))

    def stop(self) -> None:
        """Wait for the threads to end what is queued."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _jobs_of(self, chunk: int) -> list[list[Part]]:
        plan, jobs, small = self._plan, list[list[Part]](), list[Part]()
        for extent in plan.extents(chunk):
            file = plan.file[extent]
            if not self._missing[file]:
                continue
            offset, start, length = plan.offset[extent], plan.slot[extent], plan.length[extent]
            if self._kept and self._kept.has(file, offset, length):
                continue
            if self._in_one_go(file, length):
                small.append(Part(file, offset, start, length))
                if len(small) == _SMALL_RUN:
                    jobs.append(small)
                    small = []
                continue
            jobs += [
                [Part(file, offset + at, start + at, min(_PART_BYTES, length - at))]
                for at in range(0, length, _PART_BYTES)
            ]
        return [*jobs, small] if small else jobs

    def _work(self) -> None:
        me, began = threading.get_ident(), time.thread_time()
        try:
            while job := self._jobs.get():
                slot, parts = job
                for part in parts:
                    self._writing[me] = (slot.lane, part.file)
                    self._write(slot, part)
                self._done(slot, parts)
                del self._writing[me]
        except Exception as error:  # noqa: BLE001 - the main thread raises it
            self._fail(error)
        finally:
            with self._lock:
                self.totals.cpu_s += time.thread_time() - began

    def _write(self, slot: Slot, part: Part) -> None:
        if self._in_one_go(part.file, part.length):
            self._tree.write_whole(part.file, slot.payload[part.start : part.start + part.length])
            return
        direct = self._tree.direct
        length = aligned(part.length) if direct else part.length
        with self._descriptors.use(part.file) as descriptor:
            data = slot.payload[part.start : part.start + length]
            self._tree.write(part.file, descriptor, data, part.offset, direct=direct)

    def _in_one_go(self, file: int, length: int) -> bool:
        """Whether an extent is all of a small file."""
        return length == self._sizes[file] <= SMALL_FILE_BYTES

    def _done(self, slot: Slot, parts: list[Part]) -> None:
        whole: list[Part] = []
        if self._journal:
            for part in parts:
                if not self._in_one_go(part.file, part.length):
                    self._journal.wrote(part.file, part.offset, part.length)
        with self._lock:
            for part in parts:
                self.totals.bytes += part.length
                self._missing[part.file] -= part.length
                if not self._missing[part.file]:
                    whole.append(part)
            slot.pending -= 1
            is_last = not slot.pending
        for part in whole:
            if not self._in_one_go(part.file, part.length):
                self._descriptors.finish(part.file)
            if part.file not in self._shared:
                self._committer.add(part.file)
        if is_last:
            self.written.append(slot)
