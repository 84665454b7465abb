"""A look that may never come back, such as one at a file system whose server is gone, gets so much time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

_Found = TypeVar("_Found")
_TURN_S: Final = 0.2
"""How often a rank gives a sign of life meanwhile; an answer ends the wait at once."""


class NoAnswerError(Exception):
    """The look has not come back in time."""


def within(seconds: float, look: Callable[[], _Found], hear: Callable[[], None] = lambda: None) -> _Found:
    """What the look finds; an error of the system or of a value in it is the caller's.

    It runs in a thread that nobody waits for: a call that hangs in the kernel cannot be ended.

    Args:
        seconds: that it may take.
        look: must do without MPI.
        hear: called now and then while it lasts.

    Raises:
        NoAnswerError: there is no answer.
    """
    answers: list[_Found] = []
    troubles: list[Exception] = []

    def work() -> None:
        try:
            answers.append(look())
        except (OSError, ValueError, LookupError) as error:
            troubles.append(error)

    thread = threading.Thread(target=work, name="look", daemon=True)
    thread.start()
    until = time.monotonic() + seconds
    while thread.is_alive() and (left := until - time.monotonic()) > 0:
        thread.join(min(left, _TURN_S))
        hear()
    if troubles:
        raise troubles[0]
    if not answers:
        raise NoAnswerError(f"no answer within {seconds:g} s")
    return answers[0]
