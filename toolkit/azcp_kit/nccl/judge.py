"""Judges a run of the all-reduce test: each thing that must hold, with what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from azcp_kit.nccl.expected import find_figure
from azcp_kit.nccl.log import Run
from azcp_kit.spec.sku import Sku
from azcp_kit.units import format_size


class Verdict(StrEnum):
    """How it stands."""

    OK = "ok"
    FAIL = "fail"
    OPEN = "open"
    """It cannot be told."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that must hold.

    Args:
        name: of it.
        found: what the log says.
        wanted: what it should say.
        verdict: how the two compare.
        why: what a failure means, or what is missing for an answer; empty otherwise.
    """

    name: str
    found: str
    wanted: str
    verdict: Verdict
    why: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a run is compared with.

    Args:
        sku: the VM size; None if nobody said.
        expect_gbps: bus bandwidth; None takes the published figure.
        threshold: the part of it that must be reached.
        ranks: that the job had; None if nobody said.
    """

    sku: Sku | None
    expect_gbps: float | None
    threshold: float
    ranks: int | None


def judge(run: Run, wanted: Wanted) -> list[Finding]:
    """Judge a run that has a table."""
    return [
        _world(run, wanted.ranks),
        _end(run),
        _wrong(run),
        _transport(run, wanted.sku),
        _bandwidth(run, wanted),
    ]


def _world(run: Run, ranks: int | None) -> Finding:
    hosts = f" on {len(run.hosts)} node{'s' if len(run.hosts) != 1 else ''}" if run.hosts else ""
    wanted = f"{ranks}" if ranks else ""
    if run.worlds > 1:
        why = (
            "each rank tested alone: the program must be built with MPI=1 (in NGC's images it is"
            " all_reduce_perf_mpi), with an MPI whose PMIx `srun --mpi=list` shows"
        )
        return Finding("ranks", f"{run.worlds} tests of 1 rank", wanted or "one test", Verdict.FAIL, why)
    is_wrong = ranks is not None and ranks != run.ranks
    verdict = Verdict.FAIL if is_wrong else Verdict.OK if run.ranks else Verdict.OPEN
    return Finding("ranks", f"{run.ranks}{hosts}", wanted, verdict, "ranks are missing" if is_wrong else "")


def _end(run: Run) -> Finding:
    if run.average_gbps is not None:
        return Finding("end", "reached", "reached", Verdict.OK)
    why = "the log stops before the test's end" + (f": {run.troubles[0]}" if run.troubles else "")
    return Finding("end", f"at {format_size(run.largest.size_bytes)}", "reached", Verdict.FAIL, why)


def _wrong(run: Run) -> Finding:
    counts = [way.wrong for row in run.rows for way in row.ways if way.wrong is not None]
    wrong = sum(counts)
    if wrong or run.failed_checks:
        found = f"{wrong}" if wrong else f"{run.failed_checks} out of bounds"
        why = "data were corrupted: look for a bad GPU, link or HCA"
        return Finding("wrong results", found, "0", Verdict.FAIL, why)
    if counts or (run.is_checked and run.failed_checks == 0):
        return Finding("wrong results", "0", "0", Verdict.OK)
    return Finding("wrong results", "not checked", "0", Verdict.OPEN, "results were not compared (-c 0)")


def _transport(run: Run, sku: Sku | None) -> Finding:
    wanted = "no TCP" if sku and sku.hcas and len(run.hosts) > 1 else ""
    if not run.transports:
        why = "the log does not tell: run with NCCL_DEBUG=INFO"
        return Finding("transports", "unknown", wanted, Verdict.OPEN, why)
    found = ", ".join(run.transports)
    if wanted and _has(run.transports, "NET/Socket"):
        why = (
            f"NET/Socket is TCP over Ethernet, but {sku.name if sku else ''} has InfiniBand: look at"
            " /dev/infiniband in the container, who may open it, the verbs libraries, and NCCL's lines"
            " with NET/IB"
        )
        return Finding("transports", found, wanted, Verdict.FAIL, why)
    is_direct = not _has(run.transports, "NET/IB") or any("GDRDMA" in each for each in run.transports)
    why = "" if is_direct else "without GPUDirect RDMA: nvidia-peermem or DMA-BUF is missing"
    return Finding("transports", found, wanted, Verdict.OK, why)


def _has(transports: Sequence[str], name: str) -> bool:
    # A plugin's name goes on, such as IBext_v8.
    return any(each.startswith(name) for each in transports)


def _bandwidth(run: Run, wanted: Wanted) -> Finding:
    row = run.largest
    busbw = row.first.busbw_gbps
    name = f"bus bandwidth, {format_size(row.size_bytes)}"
    found = f"{busbw:.2f} GB/s"
    expected, why = _expected(run, wanted)
    if expected is None:
        return Finding(name, found, "", Verdict.OPEN, why)
    least = expected * wanted.threshold
    reason = f"{wanted.threshold * 100:g} % of {why}"
    if busbw < least:
        return Finding(name, found, f"{least:.1f} GB/s", Verdict.FAIL, f"less than {reason}")
    return Finding(name, found, f"{least:.1f} GB/s", Verdict.OK, reason)


def _expected(run: Run, wanted: Wanted) -> tuple[float | None, str]:
    """The figure to compare with and where it is from, or None and why there is none."""
    if wanted.expect_gbps is not None:
        return wanted.expect_gbps, f"the {wanted.expect_gbps:g} GB/s that were given"
    if wanted.sku is None:
        return None, "give --expect GBPS, or --sku for a published figure"
    figure = find_figure(wanted.sku.name, run.transports)
    if figure is None or len(run.hosts) == 1:
        nodes = "one node of " if figure else ""
        return None, f"nobody published a figure for {nodes}{wanted.sku.name}: give --expect GBPS"
    if run.largest.size_bytes < figure.size_bytes:
        size = format_size(figure.size_bytes)
        return None, f"the published figure is for {size}: test up to it, or give --expect GBPS"
    conditions = f"on {figure.nodes} nodes ({figure.conditions})"
    return figure.gbps, f"{figure.gbps:g} GB/s {conditions}, from {figure.source}"
