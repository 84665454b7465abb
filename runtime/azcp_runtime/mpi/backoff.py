"""Waiting without spinning: a rank that polls steals the core that TLS and writes need."""

from __future__ import annotations

import time
from typing import Final

LONGEST_NAP_S: Final = 0.001
_STEP_S: Final = 0.00002


class Backoff:
    """Naps that grow to a millisecond while nothing happens.

    MPI moves data only inside its calls, so a longer nap would slow a transfer that is under way.
    """

    def __init__(self) -> None:
        self._idle = 0

    def moved(self) -> None:
        """Something happened: the next nap is the shortest."""
        self._idle = 0

    def nap(self) -> None:
        """Give the core away; longer each time."""
        self._idle += 1
        time.sleep(min(LONGEST_NAP_S, _STEP_S * self._idle))
