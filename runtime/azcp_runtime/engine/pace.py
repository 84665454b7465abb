"""--max-bandwidth: how fast one rank may read from the source."""

from __future__ import annotations

import threading
import time


class Pace:
    """Lets bytes through at a rate, in the order in which threads ask.

    Args:
        bytes_per_second: this rank's part of the cluster's rate.
        stop: set when the run is over; ends a wait at once.
    """

    def __init__(self, bytes_per_second: float, stop: threading.Event) -> None:
        self._rate = bytes_per_second
        self._stop = stop
        self._lock = threading.Lock()
        self._free_at = time.monotonic()

    def take(self, size_bytes: int) -> None:
        """Wait until so many bytes may be asked for."""
        with self._lock:
            now = time.monotonic()
            begin = max(now, self._free_at)
            self._free_at = begin + size_bytes / self._rate
        self._stop.wait(max(0.0, begin - now))
