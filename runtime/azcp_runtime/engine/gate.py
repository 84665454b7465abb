"""The gate that every request to the source passes: connections in use, requests and bytes per second."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Final

from azcp_runtime.engine.connections import PERIOD_S, Connections, tried
from azcp_runtime.engine.pace import Pace

_LOOK_S: Final = 0.5
"""How often a thread that waits looks whether the run has ended."""

_WINDOW_S: Final = 1.0
_FEWEST: Final = 4


@dataclass(frozen=True, slots=True)
class Flow:
    """What passed a gate.

    Attributes:
        accepted_per_s: requests answered with bytes, per second of the last one.
        bytes_per_s: bytes asked for, per second of the last one.
        accepted: requests answered with bytes, since the start.
        refused: requests answered with 503 or 429, since the start.
        held: whether a rate has held back a request since this was last asked.
    """

    accepted_per_s: float
    bytes_per_s: float
    accepted: int
    refused: int
    held: bool


class Gate:
    """Lets the requests of one rank's threads through.

    Args:
        stop: set when the run is over; ends a wait soon.
        bytes_per_second: at most so many bytes are asked for; None for no bound.

    Attributes:
        accepted_by_all: requests that the account has accepted from all ranks, as far as is known here.
        waits: grows as long as a thread waits because it was told to: nothing is stuck then.
    """

    def __init__(self, stop: threading.Event, bytes_per_second: float | None = None) -> None:
        self._stop = stop
        self._requests = Pace()
        self._bytes = Pace(bytes_per_second)
        self._limited = bytes_per_second is not None
        lock = threading.Lock()
        self._freed = threading.Condition(lock)
        self._changed = threading.Condition(lock)
        # One thread waits for the time to come, the others for that thread: none wakes in vain.
        self._turn = threading.Lock()
        self.accepted_by_all = 0
        self.waits = 0
        self._most = self._connections = Connections.all_of(1 << 20)
        self._is_fixed = True
        self._in_use = 0
        self._was_full = False
        self._held = self._is_waiting = False
        self._accepted = self._refused = self._asked_bytes = 0
        self._seen: deque[tuple[float, int, int]] = deque()
        self._judged = (time.monotonic(), 0)

    @property
    def connections(self) -> int:
        """How many requests may be on their way at a time."""
        return self._connections.count

    def open(self, connections: int, *, is_fixed: bool) -> None:
        """How many threads there are; fewer of them may be let through where that is as fast."""
        self._most = self._connections = Connections.all_of(connections)
        self._is_fixed = is_fixed

    def enter(self, size_bytes: int) -> None:
        """Wait until one more request, for so many bytes, may be sent."""
        with self._freed:
            while self._in_use >= self._connections.count and not self._stop.is_set():
                self._freed.wait(_LOOK_S)
            self._in_use += 1
            self._was_full = self._was_full or self._in_use >= self._connections.count
            self._asked_bytes += size_bytes
            if not self._limited:
                return
        with self._turn, self._changed:
            while (wait_s := self._wait_s()) > 0 and not self._stop.is_set():
                self._held = self._is_waiting = True
                self.waits += 1
                self._changed.wait(min(wait_s, _LOOK_S))
            self._is_waiting = False
            now = time.monotonic()
            self._requests.take(now, 1)
            self._bytes.take(now, size_bytes)

    def pause(self, seconds: float) -> bool:
        """Wait before another try, outside of the gate; False where the run has ended meanwhile."""
        until = time.monotonic() + seconds
        while (left_s := until - time.monotonic()) > 0 and not self._stop.is_set():
            self.waits += 1  # an addition that is lost to another thread's is no harm
            self._stop.wait(min(left_s, _LOOK_S))
        return not self._stop.is_set()

    def leave(self, *, accepted: bool | None) -> None:
        """The request has been answered: with bytes, with 503 or 429 (False), or neither (None)."""
        with self._freed:
            self._in_use -= 1
            self._accepted += accepted is True
            self._refused += accepted is False
            self._freed.notify()

    def limit(self, requests_per_s: float | None, bytes_per_s: float | None) -> None:
        """This rank's portions of the cluster's rates from now on."""
        with self._changed:
            now = time.monotonic()
            self._requests.change(now, requests_per_s)
            self._bytes.change(now, bytes_per_s)
            self._limited = requests_per_s is not None or bytes_per_s is not None
            self._changed.notify_all()

    def rates(self) -> tuple[float | None, float | None]:
        """Requests and bytes per second in force."""
        return self._requests.rate, self._bytes.rate

    def flow(self, now: float) -> Flow:
        """What has passed; to be asked a few times a second."""
        with self._changed:
            self._seen.append((now, self._accepted, self._asked_bytes))
            while len(self._seen) > 1 and self._seen[1][0] <= now - _WINDOW_S:
                self._seen.popleft()
            since, accepted, asked = self._seen[0]
            # The first moments would make a rate of a handful of requests.
            seconds = max(now - since, _WINDOW_S / 4)
            held, self._held = self._held or self._is_waiting, False
            return Flow(
                (self._accepted - accepted) / seconds,
                (self._asked_bytes - asked) / seconds,
                self._accepted,
                self._refused,
                held,
            )

    def adapt(self, now: float, arrived_bytes: int) -> None:
        """Once in a while, find how many connections are enough."""
        since, before = self._judged
        if now - since < PERIOD_S:
            return
        self._judged = (now, arrived_bytes)
        with self._freed:
            was_full, self._was_full = self._was_full, False
            # Where something else holds the threads back, the rate says nothing about connections.
            if self._is_fixed or self._limited or not was_full:
                return
            rate = (arrived_bytes - before) / (now - since)
            self._connections = tried(self._connections, rate, fewest=_FEWEST, most=self._most.count)
            self._freed.notify_all()

    def _wait_s(self) -> float:
        now = time.monotonic()
        return max(self._requests.wait_s(now), self._bytes.wait_s(now))
