"""azcp-distribute: put a data set on every node. ``python -m azcp_runtime`` is the same command."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Mapping, MutableMapping, Sequence
from types import FrameType
from typing import Final, NoReturn

from azcp_runtime import console
from azcp_runtime.contract import AzcpError, ExitCode, InterruptedRunError
from azcp_runtime.mpi.launch import STOPPING, check_world_size, is_first, launched_by_mpi
from azcp_runtime.mpi.ranks import OTHERS_PATIENCE, PeerFailedError, Ranks
from azcp_runtime.options import Options, parse_options
from azcp_runtime.rails.choose import Binding
from azcp_runtime.scrub import scrub

_FIRST_SPEAKS_S: Final = 8.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code. On failure with several ranks it does not return."""
    env = os.environ
    console.install()
    for number in STOPPING:
        # What nohup has set stays: the run is to outlive its terminal.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupted)
    try:
        options = parse_options(sys.argv[1:] if argv is None else argv)
        if options.stage in ("init", "pmix") and is_first(env):
            _tell_pmix(env)
        if options.stage == "pmix":
            return ExitCode.DONE
        ranks, rail = _join(options, env)
    except AzcpError as error:
        return _refuse(error, env)
    try:
        check_world_size(ranks.seat.size, options.expect_ranks, env, alone=options.no_broadcast)
        _run(options, ranks, env, rail)
        ranks.leave()
    except AzcpError as error:
        _end(ranks, str(error), error.exit_code)
    except PeerFailedError as error:
        ranks.fail(error.line, error.code)
    except BaseException:  # noqa: BLE001 - a fault of ours: told with its traceback, and ends the other ranks
        _end(ranks, traceback.format_exc().rstrip(), ExitCode.FAULT)
    return ExitCode.DONE


def _refuse(error: AzcpError, env: Mapping[str, str]) -> int:
    """Tell what is wrong before MPI is up; where it is wrong for all ranks, the first speaks for them.

    The first rank that ends has mpirun end the others: they leave it the time to speak. Who is not ended by
    then has found what the first has not.
    """
    if not is_first(env):
        for number in STOPPING:
            signal.signal(number, signal.SIG_DFL)
        time.sleep(_FIRST_SPEAKS_S)
    print(scrub(f"azcp-distribute: {error}", env), file=sys.stderr, flush=True)
    return error.exit_code


def _run(options: Options, ranks: Ranks, env: Mapping[str, str], rail: Binding | None) -> None:
    from azcp_runtime.run import Run

    Run(options, ranks, env, rail).distribute()


def _tell_pmix(env: Mapping[str, str]) -> None:
    from azcp_runtime.mpi.pmix import mpi_folder, pmix_line

    print(pmix_line(env, mpi_folder(env, sys.prefix)), file=sys.stderr, flush=True)


def _join(options: Options, env: MutableMapping[str, str]) -> tuple[Ranks, Binding | None]:
    """The world, and what this rank was bound to before it came up."""
    if options.no_broadcast or not launched_by_mpi(env):
        from azcp_runtime.mpi.solo import Solo

        return Solo(env), None
    from azcp_runtime.mpi.world import World
    from azcp_runtime.rails.bind import bind_rank

    rail = None if options.rails is None else bind_rank(options.rail_wish, env)
    first_patience_s = OTHERS_PATIENCE * options.stall_timeout + options.retry_time
    return World(env, options.stall_timeout, first_patience_s), rail


def _end(ranks: Ranks, reason: str, code: int) -> NoReturn:
    seat = ranks.seat
    where = f" rank {seat.rank} on {seat.host}:" if seat.size > 1 and code != ExitCode.USAGE else ""
    ranks.fail(scrub(f"azcp-distribute:{where} {reason}", os.environ), code)


def _interrupted(number: int, _frame: FrameType | None) -> NoReturn:
    for each in STOPPING:
        signal.signal(each, signal.SIG_IGN)
    name = signal.Signals(number).name
    by_mpirun = number == signal.SIGTERM and launched_by_mpi(os.environ)
    raise InterruptedRunError(
        f"stopped by {name}",
        cause="mpirun sends it too, where another rank was killed, as by want of memory" if by_mpirun else "",
        remedy="the run is resumable: the same command goes on from here, inside large files too",
    )


if __name__ == "__main__":
    sys.exit(main())
