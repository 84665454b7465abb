"""`azcp-kit nccl-report`: reads the log of an all-reduce test, prints the findings, fails where it should."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from azcp_runtime.contract import UsageError, VerifyError

from azcp_kit.nccl.judge import Finding, Verdict, Wanted, judge
from azcp_kit.nccl.log import Run, read_run
from azcp_kit.shown import shown
from azcp_kit.spec.nccl import THRESHOLD
from azcp_kit.spec.sku import find_sku

MOST_BYTES: Final = 1 << 28
"""A log of NCCL_DEBUG=INFO on 1,000 GPUs is smaller."""


@dataclass(frozen=True, slots=True)
class NcclReportCommand:
    """The options; `file` is - for standard input.

    Args:
        file: the log.
        expect: bus bandwidth to compare with, GB/s; None takes what the job or its VM size says.
        sku: the VM size; empty takes what the job wrote into the log.
        threshold: the part that must be reached; None takes the job's.
        as_json: print JSON instead of a table.
    """

    file: str
    expect: float | None = None
    sku: str = ""
    threshold: float | None = None
    as_json: bool = False


def run_nccl_report(command: NcclReportCommand) -> None:
    """Print the findings on standard output.

    Raises:
        UsageError: the log cannot be read or has no table, or there is nothing to compare the bandwidth with.
        VerifyError: the test failed, or was too slow.
    """
    name = "standard input" if command.file == "-" else shown(command.file)
    run = read_run(_text(command.file, name))
    if not run.rows:
        raise UsageError(f"{name} has no table of nccl-tests or rccl-tests in it", remedy=_no_table(run))
    findings = judge(run, wanted(command, run))
    if command.as_json:
        sys.stdout.write(json.dumps(as_json(run, findings), indent=2, ensure_ascii=False) + "\n")
    else:
        from azcp_kit.nccl.report import print_report

        print_report(run, findings)
    _conclude(name, findings)


def wanted(command: NcclReportCommand, run: Run) -> Wanted:
    """What the run is compared with: the options, else what its batch script said."""
    for option, value in (("--expect", command.expect), ("--threshold", command.threshold)):
        if value is not None and not 0 < value < float("inf"):
            raise UsageError(f"{option} {value:g} is no number above 0")
    sku = command.sku or run.said.get("sku", "")
    ranks = run.said.get("ranks", "")
    return Wanted(
        sku=find_sku(sku) if sku else None,
        expect_gbps=command.expect or _number(run.said.get("expected-gbps", "")),
        threshold=command.threshold or _number(run.said.get("threshold", "")) or THRESHOLD,
        ranks=int(number) if (number := _number(ranks)) else None,
    )


def as_json(run: Run, findings: Sequence[Finding]) -> dict[str, object]:
    """Everything for a script; a number that the log does not have is null."""
    has_failed = any(finding.verdict is Verdict.FAIL for finding in findings)
    return {
        # The bandwidth is judged last: what else cannot be told does not hinder.
        "verdict": Verdict.FAIL if has_failed else findings[-1].verdict,
        "library": run.library or None,
        "ranks": run.ranks,
        "nodes": len(run.hosts),
        "transports": run.transports,
        "average_busbw_gbps": run.average_gbps,
        "findings": [asdict(finding) for finding in findings],
        "rows": [asdict(row) for row in run.rows],
    }


def _conclude(name: str, findings: Sequence[Finding]) -> None:
    if failed := [finding for finding in findings if finding.verdict is Verdict.FAIL]:
        parts = (f"{finding.name} {finding.found} ({finding.why})" for finding in failed)
        raise VerifyError(f"{name}: {shown('; '.join(parts), 1000)}")
    last = findings[-1]
    if last.verdict is Verdict.OPEN:
        raise UsageError(f"{name}: nothing to compare the bandwidth with", remedy=last.why)


def _no_table(run: Run) -> str:
    if run.troubles:
        return f"look at its line '{shown(run.troubles[0])}'"
    if run.ranks:
        return "the test began, so look at the end of the log and at `sacct -j JOBID`: was it cancelled?"
    return "is it the output of the job? Look there for errors of srun, of the container and of the loader"


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < float("inf") else None


def _text(file: str, name: str) -> str:
    try:
        if file == "-":
            content = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with Path(file).open("rb") as stream:
                content = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}") from None
    if len(content) > MOST_BYTES:
        raise UsageError(f"{name} is larger than {MOST_BYTES >> 20} MiB")
    return content.decode("utf-8", "replace")
