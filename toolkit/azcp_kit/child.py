"""Child processes that never outlive this one: each has a session of its own and dies with its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STOP_TIMEOUT_S: Final = 10.0

# prctl(2): PR_SET_PDEATHSIG outlives exec, so the kernel stops the child even when this process is killed
# with SIGKILL. It is set in a small Python between fork and exec, as preexec_fn is unsafe beside threads.
# The parent may be gone before the call: then the parent's id is no longer the one passed in.
DIE_WITH_PARENT: Final = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


def start(
    argv: Sequence[str],
    environment: Mapping[str, str],
    *,
    stdout: IO[bytes] | None = None,
    stderr: IO[bytes] | None = None,
) -> subprocess.Popen[bytes]:
    """Start `argv`, whose first word is an absolute path; the streams are inherited unless given.

    Ctrl-C on the terminal reaches this process alone, which stops its children in the right order.
    """
    return subprocess.Popen(  # noqa: S603 - an argument list, no shell
        [sys.executable, "-ISc", DIE_WITH_PARENT, str(os.getpid()), *argv],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        env=environment,
        start_new_session=True,
    )


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ask the process to end, then end it and what is left of its process group."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_TIMEOUT_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
