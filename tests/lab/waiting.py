"""Waiting for a condition, never for a time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

POLL_S: Final = 0.005


def wait_until(condition: Callable[[], bool], deadline_s: float, what: str) -> None:
    """Return as soon as `condition` holds.

    Raises:
        TimeoutError: it does not hold after `deadline_s` seconds.
    """
    deadline = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {deadline_s:.0f} s still not true: {what}")
        time.sleep(POLL_S)
