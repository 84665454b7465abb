"""azcp-mpirun: the isolated mpirun, as a child so that signals and exit codes mean what they should."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from types import FrameType
from typing import Final

from azcp_runtime.contract import ExitCode, PreflightError
from azcp_runtime.contract.image import ENV_RESTORED, OPENMPI
from azcp_runtime.isolate import ENV_TCP_EXCLUDE, mpi_environment
from azcp_runtime.launch.hosts import check_own_name
from azcp_runtime.launch.peers import Loss
from azcp_runtime.ssh.state import state_dir

MPIRUN: Final = f"{OPENMPI}/bin/mpirun"
_STOPPING: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
_PASSED_ON: Final = (*_STOPPING, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT)
_ENDED_BY_SIGNAL: Final = 128
_PR_SET_PDEATHSIG: Final = 1
_LOOK_EVERY_S: Final = 0.5
OWN_END_S: Final = 5.0
"""mpirun and azcp-distribute notice a lost node too, and know more to say about it."""

_TOLD_END_S: Final = 10.0
_LIBC: Final = ctypes.CDLL(None)
"""Loaded here and not between fork and exec, where a lock of the loader may never be given back."""


def main(argv: Sequence[str]) -> int:
    """Run mpirun with these arguments; its exit code, or 75 where a signal to us has stopped it."""
    return run_mpirun(argv, os.environ)


def run_mpirun(
    arguments: Sequence[str],
    env: Mapping[str, str],
    lost: Future[Loss] | None = None,
    *,
    reads_stdin: bool = True,
    output: int | None = None,
) -> int:
    """The exit code of mpirun, or 75 where a signal to us has stopped it.

    Args:
        arguments: of mpirun.
        env: any; it is scrubbed.
        lost: a node whose loss ends mpirun, if it does not end by itself.
        reads_stdin: whether rank 0 may read ours.
        output: descriptor of a file that takes what the ranks write to standard output; None leaves it ours.

    Raises:
        PreflightError: mpirun cannot be started here.
    """
    check_own_name(os.uname().nodename)
    clean = mpi_environment(env, state_dir(env), os.geteuid()) | _on_loopback(env)
    # Without --noprefix mpirun wraps its daemon's command in shell text that not every base could run.
    argv = [MPIRUN, "--noprefix", *arguments]
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        return _run(argv, clean, lost, None if reads_stdin else subprocess.DEVNULL, output)
    except OSError as error:
        raise PreflightError(
            f"{MPIRUN} cannot be started: {error.strerror}",
            remedy="azcp-kit verify IMAGE tells what is wrong",
        ) from error


def _end_with_parent() -> None:
    """Have SIGTERM sent when we are killed: no node must go on for a launcher that is gone (prctl(2))."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _on_loopback(env: Mapping[str, str]) -> dict[str, str]:
    """Without any other interface loopback is the network, and our settings must not exclude it."""
    if {name for _, name in socket.if_nameindex()} - {"lo"}:
        return {}
    names = ("OMPI_MCA_oob_tcp_if_exclude", ENV_TCP_EXCLUDE)
    return {name: "docker0" for name in names if f"{ENV_RESTORED}{name}" not in env}


def _run(
    argv: Sequence[str],
    env: Mapping[str, str],
    lost: Future[Loss] | None,
    stdin: int | None,
    stdout: int | None,
) -> int:
    stopped: list[int] = []
    child: subprocess.Popen[bytes] | None = None

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if number in _STOPPING:
            stopped.append(number)
        if child:
            child.send_signal(signal.SIGTERM if number == signal.SIGHUP else number)

    before = {number: signal.signal(number, pass_on) for number in _PASSED_ON}
    try:
        # A group of its own: else Ctrl-C reaches mpirun twice, which makes it leave its ranks behind.
        child = subprocess.Popen(  # noqa: S603 - our own mpirun, an argument list
            argv,
            env=dict(env),
            stdin=stdin,
            stdout=stdout,
            process_group=0,
            preexec_fn=_end_with_parent,  # noqa: PLW1509 - it takes no lock, whatever our threads hold
        )
        if stopped:
            child.send_signal(stopped[0])
        code = _wait(child, lost) if lost else child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if stopped and code:
        return ExitCode.RESUMABLE
    return code if code >= 0 else _ENDED_BY_SIGNAL - code


def _wait(child: subprocess.Popen[bytes], lost: Future[Loss]) -> int:
    """Its exit code; it is told to end, and then ended, where it does not notice that a node is lost."""
    steps = [(OWN_END_S, signal.SIGTERM), (OWN_END_S + _TOLD_END_S, signal.SIGKILL)]
    since = 0.0
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return child.wait(_LOOK_EVERY_S)
        if not lost.done():
            continue
        since = since or time.monotonic()
        while steps and time.monotonic() - since > steps[0][0]:
            child.send_signal(steps.pop(0)[1])
