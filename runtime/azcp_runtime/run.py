"""One run of azcp-distribute, stage by stage."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from azcp_runtime.contract import ENV_SIMULATE_NODES, PreflightError, UsageError, WriteError
from azcp_runtime.disk.forget import forget
from azcp_runtime.disk.probe import prepare
from azcp_runtime.engine.gate import Gate
from azcp_runtime.engine.one_pass import Trouble
from azcp_runtime.engine.totals import RETRY_CLASSES, RankTotals, gather_totals, retries_by_class, span_of
from azcp_runtime.engine.watch import Watch
from azcp_runtime.mpi.ranks import Ranks
from azcp_runtime.options import Options
from azcp_runtime.plan.budget import Budget
from azcp_runtime.plan.chunks import Plan
from azcp_runtime.plan.presence import Diff
from azcp_runtime.preflight.asked import asked_of
from azcp_runtime.preflight.together import preflight
from azcp_runtime.progress import choose_display
from azcp_runtime.rails.choose import Binding
from azcp_runtime.rails.table import share_rails
from azcp_runtime.report import DONE, Record
from azcp_runtime.source.listing import Listing
from azcp_runtime.source.location import BlobLocation, Location
from azcp_runtime.source.reader import BlobReader, DirectoryReader, OriginReader
from azcp_runtime.source.shardlist import filelist_text
from azcp_runtime.stages.diff import Destination, diff_stage, plain_diff, source_identity
from azcp_runtime.stages.listing import Access, list_stage, secret_of, source_of
from azcp_runtime.stages.needs import needs_of
from azcp_runtime.stages.one_pass import Pass, Work, goals
from azcp_runtime.stages.plan import check_same_options, downloaders, plan_figures, plan_lines, plan_stage
from azcp_runtime.stages.tune import tune_stage
from azcp_runtime.summary import (
    bcast_line,
    diff_line,
    download_line,
    filelist_line,
    list_line,
    retries_line,
    total_line,
    verify_line,
)
from azcp_runtime.tune.told import tuned_figures, tuned_line
from azcp_runtime.verify import verify


class Run:
    """The state of one run on one rank: what it was asked, who it is, and what it has found.

    Args:
        options: the command line.
        ranks: the world.
        env: the environment.
        rail: what this rank was bound to; None where it was not asked for, or there is one rank.
    """

    def __init__(
        self, options: Options, ranks: Ranks, env: Mapping[str, str], rail: Binding | None = None
    ) -> None:
        self._options = options
        self._ranks = ranks
        self._env = env
        self._rail = rail
        self._is_root = ranks.seat.rank == 0
        self._began = time.monotonic()
        self._record = Record(options, ranks.seat, env)
        self._stages = self._record.stages

    def distribute(self) -> None:
        """All stages.

        Raises:
            AzcpError: the run has failed; its class has the exit code.
        """
        if self._options.stage == "init":
            return
        check_same_options(self._ranks, self._options)
        self._share_rails()
        self._check_early()
        self._preflight()
        with self._record:
            self._stages_in_order()

    def _stages_in_order(self) -> None:
        options, ranks = self._options, self._ranks
        location = source_of(options, is_lister=self._is_root)
        self._record.source = str(location)
        listing, access = self._list(location)
        if options.stage == "list":
            return
        if options.dry_run:
            self._dry_run(listing)
            return
        diff, destination = self._diff(location, listing)
        if options.stage == "diff":
            return
        planned = plan_stage(ranks, options, listing, diff)
        self._check_lasts(access, listing, diff)
        plan, budget = self._tune(listing, diff, destination, planned)
        self._record.plan = plan_figures(listing, plan, budget)
        totals, retries = self._pass(location, access, listing, diff, destination, plan, budget)
        self._verify(destination.path, listing)
        self._filelist(listing)
        self._finish(totals, retries)
        destination.release()

    def _share_rails(self) -> None:
        wanted = self._options.rails
        if wanted is None or self._options.no_broadcast:
            return
        rail = self._rail or Binding(0)
        for line in share_rails(self._ranks, wanted, rail, self._env):
            print(f"[rails] {line}", file=sys.stderr, flush=True)

    def _check_early(self) -> None:
        """What would fail only at the end of the run, or after the listing."""
        downloaders(self._options, self._ranks.seat)
        filelist = self._options.filelist
        if filelist and not os.access(filelist, os.R_OK):
            raise UsageError(f"--filelist {filelist} cannot be read", remedy="it must be there on every node")
        if not self._is_root:
            return
        for option, path in (
            ("--report", self._options.report),
            ("--save-filelist", self._options.save_filelist),
        ):
            if path and not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
                raise UsageError(f"{option} {path} cannot be written", remedy="choose a folder that exists")
            if path and path.is_dir():
                raise UsageError(f"{option} {path} is a folder", remedy="name a file")

    def _preflight(self) -> None:
        options, env = self._options, self._env
        if options.stage != "pmix":
            preflight(self._ranks, asked_of(options, self._ranks.seat, env), env, self._warn)

    def _list(self, location: Location) -> tuple[Listing, Access]:
        began = time.monotonic()
        listing, access = list_stage(self._ranks, self._options, location, self._introduce)
        seconds = time.monotonic() - began
        self._stages["list"] = {"files": len(listing), "bytes": listing.total_bytes, "seconds": seconds}
        self._say(list_line(len(listing), listing.total_bytes, seconds))
        return listing, access

    def _diff(self, location: Location, listing: Listing) -> tuple[Diff, Destination]:
        began = time.monotonic()
        diff, destination = diff_stage(
            self._ranks, self._options, self._dest(), listing, location, self._note
        )
        seconds = time.monotonic() - began
        self._stages["diff"] = {
            "transfer": diff.peer + diff.azure,
            "peer": diff.peer,
            "azure": diff.azure,
            "skipped": diff.skipped,
            "seconds": seconds,
        }
        self._say(diff_line(diff.peer, diff.azure, diff.skipped, seconds))
        return diff, destination

    def _tune(
        self, listing: Listing, diff: Diff, destination: Destination, planned: tuple[Plan, Budget]
    ) -> tuple[Plan, Budget]:
        plan, budget, tuned = tune_stage(self._ranks, self._options, listing, diff, destination, planned)
        if tuned:
            self._record.tune = tuned_figures(tuned)
            if self._is_root:
                print(tuned_line(tuned), file=sys.stderr, flush=True)
        return plan, budget

    def _pass(
        self,
        location: Location,
        access: Access,
        listing: Listing,
        diff: Diff,
        destination: Destination,
        plan: Plan,
        budget: Budget,
    ) -> tuple[list[RankTotals], dict[str, int]]:
        stop = threading.Event()
        gate = self._pace(stop, len(plan.lanes))
        source, retries = self._source(location, access, stop, gate)
        reader = OriginReader(listing, diff, source, destination.path, destination.kept.whole)
        needs = needs_of(plan, destination, self._ranks.seat, listing)
        wanted = self._is_root and not self._options.no_progress
        goal = goals(plan, self._ranks.seat, sum(needs.missing))
        display = choose_display(goal, self._env, self._ranks.seat.rails) if wanted else None
        identity = source_identity(location)
        work = Work(self._options, listing, plan, budget, destination, needs, identity, reader, gate, retries)
        one_pass = Pass(self._ranks, work, Watch(display), Trouble(), stop)
        self._record.follow(lambda: [one_pass.so_far()])
        totals = gather_totals(self._ranks, one_pass.run())
        self._record.follow(lambda: totals)
        self._report_pass(plan, diff, listing, totals)
        return totals, retries_by_class(totals)

    def _check_lasts(self, access: Access, listing: Listing, diff: Diff) -> None:
        """Refuse a SAS that ends before the run can, or warn of it where it can be replaced meanwhile."""
        if not self._is_root or access.expires is None:
            return
        from azcp_runtime.azure.sas import check_lasts

        wanted = diff.source_bytes(listing.sizes)
        rate, nodes = self._options.max_bandwidth, self._ranks.seat.nodes
        try:
            warning = check_lasts(access.expires, time.time(), wanted, nodes, rate)
        except PreflightError as error:
            if not access.file:
                raise
            warning = f"{error.what}; it is read again from {access.file} then"
        if warning:
            self._introduce(warning)

    def _pace(self, stop: threading.Event, owners: int) -> Gate:
        """What this rank's reads pass; all that read begin with even parts of the cluster's rate."""
        rate = self._options.max_bandwidth
        return Gate(stop, rate / max(1, owners) if rate else None)

    def _report_pass(self, plan: Plan, diff: Diff, listing: Listing, totals: list[RankTotals]) -> None:
        if not self._is_root:
            return
        download = span_of(totals, diff.source_bytes(listing.sizes), fetch=True)
        is_alone = self._ranks.seat.nodes == 1
        moved = 0 if is_alone else sum(lane.total_bytes for lane in plan.lanes)
        shards = 0 if is_alone else plan.shards
        bcast = span_of(totals, moved, fetch=False)
        self._stages["download"] = {"bytes": download.bytes, "seconds": download.seconds}
        self._stages["bcast"] = {"shards": shards, "bytes": bcast.bytes, "seconds": bcast.seconds}
        self._say(download_line(download))
        self._say(bcast_line(shards, bcast))

    def _source(
        self, location: Location, access: Access, stop: threading.Event, gate: Gate
    ) -> tuple[BlobReader, Callable[[], list[int]]]:
        if not isinstance(location, BlobLocation):
            return DirectoryReader(location.path, gate), lambda: [0] * len(RETRY_CLASSES)
        from azcp_runtime.azure.body import BodyReader
        from azcp_runtime.azure.relay import hold
        from azcp_runtime.azure.retry import Retries, RetryLimits

        retries = Retries()
        limits = RetryLimits(self._options.max_retries, self._options.retry_time)
        secret, seat = secret_of(access), self._ranks.seat
        holder = hold(secret, access.value, access.left, seat, self._ranks.notes)
        return BodyReader(location, secret, limits, retries, stop, gate, holder), retries.counts

    def _verify(self, dest: Path, listing: Listing) -> None:
        if not self._options.verify:
            return
        began = time.monotonic()
        found = verify(self._ranks, dest, listing, self._options.stall_timeout)
        seconds = time.monotonic() - began
        self._stages["verify"] = {
            "files": found.files,
            "match": found.match,
            "mismatch": found.mismatch,
            "absent": found.absent,
            "seconds": seconds,
        }
        self._say(verify_line(found, seconds))
        if found.names:
            if self._ranks.seat.rail == 0:
                forget(dest, found.names)
            self._ranks.barrier()
        if self._is_root:  # it alone knows which nodes differ; the others wait for it in the end
            found.check()

    def _filelist(self, listing: Listing) -> None:
        began, entries = time.monotonic(), None
        if self._options.save_filelist and self._is_root:
            entries = self._save_filelist(self._options.save_filelist, listing)
        seconds = time.monotonic() - began
        self._stages["filelist"] = {"entries": entries or 0, "seconds": seconds}
        self._say(filelist_line(entries, seconds))

    def _save_filelist(self, path: Path, listing: Listing) -> int:
        text, left_out = filelist_text(listing)
        if left_out:
            self._note(f"{left_out} names with tabs or line breaks do not fit into {path}")
        try:
            path.write_bytes(text.encode("utf-8", "surrogateescape"))
        except OSError as error:
            raise WriteError(f"cannot write --save-filelist {path}: {error.strerror}") from error
        return len(listing) - left_out

    def _finish(self, totals: list[RankTotals], retries: dict[str, int]) -> None:
        if not self._is_root:
            return
        line = retries_line(retries, sum(row.fetched_bytes > 0 for row in totals))
        if line:
            self._say(line)
        seconds = time.monotonic() - self._began
        self._stages["total"] = {"seconds": seconds}
        self._record.write(DONE)
        self._say(total_line(seconds))

    def _dry_run(self, listing: Listing) -> None:
        diff = plain_diff(self._ranks, listing)
        plan, budget = plan_stage(self._ranks, self._options, listing, diff)
        for line in plan_lines(self._ranks.seat, listing, plan, budget):
            self._say(line)

    def _dest(self) -> Path:
        """This node's destination: DEST, or a folder of its own in it where nodes are simulated."""
        dest = Path(os.path.abspath(self._options.dest))
        if not self._env.get(ENV_SIMULATE_NODES):
            return dest
        prepare(dest)
        return dest / f"node{self._ranks.seat.node}"

    def _say(self, line: str) -> None:
        if self._is_root:
            print(line, flush=True)

    def _introduce(self, line: str) -> None:
        if self._is_root:
            print(f"[identity] {line}", file=sys.stderr, flush=True)

    def _warn(self, line: str) -> None:
        print(f"[preflight] {line}", file=sys.stderr, flush=True)

    def _note(self, line: str) -> None:
        if self._is_root:
            print(f"azcp-distribute: {line}", file=sys.stderr, flush=True)
