"""A process that stays outside of MPI, and speaks where MPI does not come up.

MPI_Init ends the process or hangs in it when the fabric is set up wrongly, which is just what the
examination is to explain.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
from collections.abc import Callable
from typing import Final

from azcp_runtime.contract import InterruptedRunError

_PATIENCE_S: Final = 120.0
_PR_SET_PDEATHSIG: Final = 1
"""prctl(2)."""


def guarded(
    work: Callable[[Callable[[], None]], int], speak: Callable[[str], int], patience_s: float = _PATIENCE_S
) -> int:
    """Do the work in a child process; the exit code.

    Args:
        work: gets a function to call as soon as MPI is up; gives the exit code.
        speak: called instead when MPI does not come up, with what happened; gives the exit code.
        patience_s: how long MPI may take.
    """
    ears, mouth = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ears)
        # A launcher that kills the guardian alone must not leave the rank behind.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        _end_child(work(lambda: os.close(mouth) if os.write(mouth, b"+") else None))
    os.close(mouth)
    try:
        is_up = _heard(ears, patience_s)
        if is_up:
            return _ended(child)
        if is_up is None:
            os.kill(child, signal.SIGKILL)
            _ended(child)
            return speak(f"MPI did not come up within {patience_s:g} s")
        return speak(f"MPI did not come up: {_said(_ended(child))}")
    except InterruptedRunError as error:
        os.kill(child, signal.SIGTERM)
        return speak(f"{error.what} before MPI was up") if not _is_up(ears) else _ended(child)
    finally:
        os.close(ears)


def _heard(ears: int, patience_s: float) -> bool | None:
    """Whether MPI is up; False where the child has ended before, None where neither happened in time."""
    ready, _, _ = select.select([ears], [], [], patience_s)
    return os.read(ears, 1) == b"+" if ready else None


def _is_up(ears: int) -> bool:
    return bool(_heard(ears, 0.0))


def _ended(child: int) -> int:
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _said(code: int) -> str:
    return (
        f"the process ended with {signal.Signals(-code).name}" if code < 0 else f"it ended with code {code}"
    )


def _end_child(code: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)
