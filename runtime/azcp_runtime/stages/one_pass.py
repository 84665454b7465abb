"""[download] and [bcast]: the pass is set up, run, and its files are committed."""

from __future__ import annotations

import os
import resource
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from azcp_runtime.disk.commit import Committer
from azcp_runtime.disk.journal import Journal
from azcp_runtime.disk.kept import journal_path
from azcp_runtime.disk.tree import Tree
from azcp_runtime.engine.fetch import Fetchers
from azcp_runtime.engine.gate import Gate
from azcp_runtime.engine.one_pass import BcastTotals, LaneState, OnePass, Parts, Trouble
from azcp_runtime.engine.settle import DiskWatch, settle
from azcp_runtime.engine.sharing import Sharing
from azcp_runtime.engine.slots import Slot
from azcp_runtime.engine.totals import RankTotals
from azcp_runtime.engine.watch import Watch
from azcp_runtime.engine.write import Writers
from azcp_runtime.machine import cpu_quota, cpus
from azcp_runtime.mpi.ranks import Fabric, Ranks, Seat
from azcp_runtime.options import Options
from azcp_runtime.plan.budget import Budget, most_connections
from azcp_runtime.plan.chunks import Lane, Plan
from azcp_runtime.progress import Moved
from azcp_runtime.source.listing import Listing
from azcp_runtime.source.reader import OriginReader
from azcp_runtime.stages.diff import Destination
from azcp_runtime.stages.needs import Needs

_FEWEST_FETCHERS: Final = 4
_MOST_WRITERS: Final = 8
_SMALLEST_BLOCK: Final = 1 << 20
_SLOWEST_BLOCK: Final = 64 << 10
_LARGEST_BLOCK: Final = 8 << 20
_LAST_WORDS_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Work:
    """All that the pass needs to know; ``source`` is its identity in the journal."""

    options: Options
    listing: Listing
    plan: Plan
    budget: Budget
    destination: Destination
    needs: Needs
    source: bytes
    reader: OriginReader
    gate: Gate
    retries: Callable[[], list[int]]


class Pass:
    """The parts of one rank's pass: threads, slots, lanes.

    Args:
        ranks: the world.
        work: the work.
        watch: progress and samples.
        trouble: where threads report their failures.
        stop: set when the run is over, so that waits for the account end.
    """

    def __init__(
        self, ranks: Ranks, work: Work, watch: Watch, trouble: Trouble, stop: threading.Event
    ) -> None:
        self._ranks = ranks
        self._work = work
        self._watch = watch
        self._trouble = trouble
        self._stop = stop
        seat, listing, plan = ranks.seat, work.listing, work.plan
        destination = work.destination
        self._tree = Tree(
            destination.path,
            listing.names,
            listing.sizes,
            direct=destination.direct,
            notice=self._notice,
        )
        self._journal = Journal(
            journal_path(destination.path, seat.rail),
            self._tree,
            listing,
            work.source,
            fail=trouble.report,
            notice=self._notice,
        )
        self._committer = Committer(self._tree, trouble.report, self._journal)
        self._writers = Writers(
            plan,
            listing.sizes,
            work.needs.missing,
            self._tree,
            self._committer,
            shared=work.needs.shared,
            kept=destination.kept,
            journal=self._journal,
            threads=work.options.bcast_writers or min(_MOST_WRITERS, max(2, cpus() // seat.rails)),
            fail=trouble.report,
        )
        mine = [lane for lane in plan.lanes if lane.owner % seat.rails == seat.rail]
        self._own = next((i for i, lane in enumerate(mine) if lane.owner == seat.index), None)
        self._lanes = [self._lane_state(index, lane) for index, lane in enumerate(mine)]
        self._fabric: Fabric = ranks.open_lanes([lane.owner // seat.rails for lane in mine])
        self._fetchers = self._make_fetchers()
        self._bcast = BcastTotals()

    def run(self) -> RankTotals:
        """Move everything and commit it; this rank's figures.

        Raises:
            AzcpError: whatever ended it.
        """
        self._ranks.barrier()
        self._watch.begin(self._fetchers, self._writers)
        parts = Parts(
            self._ranks.seat,
            self._work.plan,
            self._lanes,
            self._own,
            self._fabric,
            self._fetchers,
            self._writers,
            self._trouble,
            self._work.reader.shown,
            lambda: self._work.gate.waits,
        )
        loop = OnePass(parts, self._watch.tick, self._work.options.stall_timeout)
        self._bcast = loop.totals
        self._watch.follow(self._bcast)
        self._ranks.carry(self._sharing())
        try:
            loop.run()
            self._stop.set()
            if self._fetchers:
                self._fetchers.join()
            self._writers.stop()
            self._commit()
        finally:
            # However the run ends, what is on the disk is written down; mpirun waits a second or so.
            self._journal.end(_LAST_WORDS_S)
            self._ranks.carry(None)
            self._watch.end()  # gives the terminal its cursor back
        return self.so_far()

    def _commit(self) -> None:
        """Give every file its name: those of one rail as they came, the rest when all rails are done."""
        seat = self._ranks.seat
        if seat.rails > 1:
            self._ranks.barrier(node_only=True)
        if seat.rail == 0:
            for file in self._work.needs.shared:
                self._committer.add(file)
            for file in self._work.needs.ready:
                self._tree.cut_padding(file)
                self._committer.add(file)
        self._committer.close()
        watch = DiskWatch(self._work.destination.path, self._committer, self._work.options.stall_timeout)
        settle(self._committer, watch, self._fabric.completed)
        self._trouble.check()
        self._ranks.barrier()
        self._fabric.close()
        self._tree.close()

    @staticmethod
    def _notice(text: str) -> None:
        print(f"[write] {text}", file=sys.stderr, flush=True)

    def _lane_state(self, index: int, lane: Lane) -> LaneState:
        count = self._work.budget.own_slots if index == self._own else self._work.budget.lane_slots
        slots = [Slot(index, lane) for _ in range(min(count, lane.chunks))]
        return LaneState(lane, slots)

    def _make_fetchers(self) -> Fetchers | None:
        if self._own is None:
            return None
        options, seat = self._work.options, self._ranks.seat
        lane = self._lanes[self._own]
        block = options.block_size or max(_SMALLEST_BLOCK, min(_LARGEST_BLOCK, lane.shape.payload_bytes // 8))
        if options.max_bandwidth:  # a read is asked for only when its bytes are due: keep that short
            block = max(_SLOWEST_BLOCK, min(block, options.max_bandwidth // (8 * len(self._work.plan.lanes))))
        # No more threads than reads that the slots have room for: idle ones fight for the lock.
        reads = len(lane.slots) * -(-lane.shape.payload_bytes // block)
        most = most_connections(cpus(), os.cpu_count() or 1, cpu_quota(), seat.rails)
        threads = options.concurrency or max(_FEWEST_FETCHERS, min(reads, most))
        self._work.gate.open(threads, is_fixed=options.concurrency is not None)
        return Fetchers(
            self._work.plan,
            lane.shape,
            lane.slots,
            self._work.reader,
            threads=threads,
            block_bytes=block,
            parallel_files=options.parallel_files,
            fail=self._trouble.report,
        )

    def _sharing(self) -> Sharing:
        fetchers, plan = self._fetchers, self._work.plan
        return Sharing(
            self._ranks.seat.rank,
            self._work.gate,
            (lambda: (fetchers.arrived_bytes, fetchers.left_bytes)) if fetchers else None,
            owners=len(plan.lanes),
            bytes_per_s=self._work.options.max_bandwidth,
            notice=lambda text: print(f"[download] {text}", file=sys.stderr, flush=True),
        )

    def so_far(self) -> RankTotals:
        """This rank's figures, of a pass that has ended or is under way."""
        seat, began = self._ranks.seat, self._watch.began
        usage = resource.getrusage(resource.RUSAGE_SELF)
        fetch = self._fetchers.totals if self._fetchers else None
        return RankTotals(
            rank=seat.index,
            node=seat.node,
            rail=seat.rail,
            host=seat.host,
            fetched_bytes=fetch.bytes if fetch else 0,
            fetch_span=(fetch.began - began, fetch.ended - began) if fetch else (0.0, 0.0),
            received_bytes=self._bcast.received,
            bcast_span=(max(0.0, self._bcast.began - began), max(0.0, self._bcast.ended - began)),
            written_bytes=self._writers.totals.bytes,
            cpu_seconds=usage.ru_utime + usage.ru_stime,
            cpu_fetch_seconds=fetch.cpu_s if fetch else 0.0,
            cpu_bcast_seconds=self._bcast.cpu_s,
            cpu_write_seconds=self._writers.totals.cpu_s + self._committer.cpu_s + self._journal.cpu_s,
            max_rss_bytes=usage.ru_maxrss * 1024,
            retries=self._work.retries(),
            samples=self._watch.columns(),
        )


def goals(plan: Plan, seat: Seat, missing_bytes: int) -> Moved:
    """What a rank will have moved when the pass is over."""
    rail = [lane for lane in plan.lanes if lane.owner % seat.rails == seat.rail]
    own = sum(lane.total_bytes for lane in rail if lane.owner == seat.index)
    return Moved(own, sum(lane.total_bytes for lane in rail) - own, missing_bytes)
