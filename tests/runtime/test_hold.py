"""azcp-hold ends when it is told to, also as process 1 of a container."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.waiting import wait_until

HOLD = (sys.executable, "-c", "from azcp_runtime.hold import main; main()")
AS_FIRST = ("unshare", "--pid", "--fork", "--kill-child")
DEADLINE_S = 30.0


def handles(pid: int, number: signal.Signals) -> bool:
    """Whether the process has a handler for that signal."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    (caught,) = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")]
    return bool(int(caught, 16) >> (number - 1) & 1)


def children(pid: int) -> list[int]:
    """Of a process."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stays_until_it_is_told_to_end(number: signal.Signals) -> None:
    with subprocess.Popen(HOLD) as process:
        wait_until(lambda: handles(process.pid, signal.SIGHUP), DEADLINE_S, "it waits")
        process.send_signal(number)
        assert process.wait(timeout=DEADLINE_S) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="a process 1 of its own needs root")
def test_as_process_1_it_ends_too() -> None:
    with subprocess.Popen([*AS_FIRST, *HOLD]) as process:
        wait_until(lambda: bool(children(process.pid)), DEADLINE_S, "it has begun")
        (first,) = children(process.pid)
        wait_until(lambda: handles(first, signal.SIGHUP), DEADLINE_S, "it waits")
        os.kill(first, signal.SIGTERM)
        assert process.wait(timeout=DEADLINE_S) == 0
