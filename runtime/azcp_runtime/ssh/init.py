"""What the first process of a container owes its system: to pass signals on, and to bury every orphan."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from types import FrameType
from typing import Final

_PASSED_ON: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
_ENDED_BY_SIGNAL: Final = 128


def fork_if_first(also: Sequence[signal.Signals] = ()) -> None:
    """As process 1, stay behind as its init and go on in a child; else do nothing.

    The kernel gives process 1 every orphan, and a worker lives for days: each would stay a zombie.

    Args:
        also: signals that the child knows what to do with, beside those that end it.
    """
    if os.getpid() != 1:
        return
    child = os.fork()
    if child:
        os._exit(_wait_for(child, (*_PASSED_ON, *also)))


def _wait_for(child: int, passed_on: Sequence[signal.Signals]) -> int:
    def pass_on(number: int, _frame: FrameType | None) -> None:
        os.kill(child, number)

    for number in passed_on:
        signal.signal(number, pass_on)
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else _ENDED_BY_SIGNAL - code
