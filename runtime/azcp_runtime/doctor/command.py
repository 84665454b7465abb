"""azcp-doctor: examine this node, or under mpirun every node, and say what to do."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Final, NoReturn

from azcp_runtime import console
from azcp_runtime.contract import AzcpError, ExitCode, InterruptedRunError
from azcp_runtime.doctor.check import Status
from azcp_runtime.doctor.gather import NodeReport, as_json, parted, worst
from azcp_runtime.doctor.guardian import guarded
from azcp_runtime.doctor.node import NodeFacts, read_node
from azcp_runtime.doctor.options import DoctorOptions, parse_options
from azcp_runtime.doctor.session import join, report_without_mpi, reports_of_all
from azcp_runtime.doctor.table import printable, table, verdict
from azcp_runtime.mpi.launch import is_first, launched_by_mpi
from azcp_runtime.mpi.ranks import PeerFailedError, Ranks
from azcp_runtime.scrub import scrub
from azcp_runtime.source.location import parse_source

SCHEMA: Final = 1
"""Version of what --json prints."""

_WIDTH: Final = 120
"""Of a log, where no terminal says its own."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code, on rank 0 that of all nodes together."""
    env = os.environ
    console.install()
    # Standard output is the answer, and UCX would write its warnings there.
    env.setdefault("UCX_LOG_FILE", "stderr")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _interrupted)
    try:
        options = parse_options(sys.argv[1:] if argv is None else argv)
        if options.source is not None:
            parse_source(options.source)  # before MPI: a wrong command line is no finding
        facts = read_node(env)
        if not launched_by_mpi(env):
            return _examine(facts, options, env, lambda: None)
        return guarded(
            lambda is_up: _examine(facts, options, env, is_up),
            lambda what: _show(options, report_without_mpi(facts, options, env, what)),
        )
    except AzcpError as error:
        if is_first(env):
            print(scrub(f"azcp-doctor: {error}", env), file=sys.stderr)
        return error.exit_code


def _examine(
    facts: NodeFacts, options: DoctorOptions, env: Mapping[str, str], is_up: Callable[[], None]
) -> int:
    ranks, refused = join(env)
    is_up()
    try:
        reports = reports_of_all(facts, options, ranks, env, refused)
        # Where the ranks do not find each other, the first speaks for all.
        code = _show(options, reports, speaks=is_first(env))
        ranks.leave()
    except AzcpError as error:
        _end(ranks, str(error), error.exit_code)
    except PeerFailedError as error:
        ranks.fail(error.line, error.code)
    except BaseException:  # noqa: BLE001 - a fault of ours: told with its traceback, and ends the other ranks
        _end(ranks, traceback.format_exc().rstrip(), ExitCode.FAULT)
    return code


def _show(options: DoctorOptions, reports: list[NodeReport], *, speaks: bool = True) -> int:
    """Print the reports; the exit code that they mean."""
    if reports and speaks:
        if options.json:
            answer = {"schema": SCHEMA, "nodes": [as_json(report) for report in reports]}
            print(scrub(json.dumps(answer, indent=2), os.environ))
        else:
            width = shutil.get_terminal_size((_WIDTH, 0)).columns
            for line in (*table(parted(reports), width), "", verdict(reports)):
                print(scrub(printable(line, sys.stdout.encoding), os.environ))
        sys.stdout.flush()
    return ExitCode.PREFLIGHT if worst(reports) is Status.FAIL else ExitCode.DONE


def _end(ranks: Ranks, reason: str, code: int) -> NoReturn:
    seat = ranks.seat
    where = f" rank {seat.rank} on {seat.host}:" if seat.size > 1 else ""
    ranks.fail(scrub(f"azcp-doctor:{where} {reason}", os.environ), code)


def _interrupted(number: int, _frame: FrameType | None) -> NoReturn:
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)
    raise InterruptedRunError(f"stopped by {signal.Signals(number).name}")
