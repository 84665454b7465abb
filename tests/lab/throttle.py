"""Accounts that are asked too often, as conditions for a fault: for a while, or by a bucket of tokens."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.lab.answers import Request


class Storm:
    """Refuses a share of the reads, whoever asks, for a while that begins with the first read.

    Args:
        share: of the reads, 0 to 1.
        seconds: how long.
        seed: of the choice.
    """

    def __init__(self, share: float, seconds: float, seed: int = 1) -> None:
        self._share = share
        self._seconds = seconds
        self._random = random.Random(seed)
        self._until = 0.0

    def refuses(self, request: Request) -> bool:
        """Whether this one is refused; called under the account's lock."""
        if not request.is_blob_read:
            return False
        self._until = self._until or request.at + self._seconds
        return request.at < self._until and self._random.random() < self._share


class Bucket:
    """Accepts so many reads per second from all clients together, and a few at once after a pause.

    Args:
        per_s: reads per second.
        burst: the most at once.
    """

    def __init__(self, per_s: float, burst: float) -> None:
        self._per_s = per_s
        self._burst = self._tokens = burst
        self._at = time.monotonic()

    def refuses(self, request: Request) -> bool:
        """Whether there is no token for this one; called under the account's lock."""
        if not request.is_blob_read:
            return False
        now = time.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._per_s)
        self._at = now
        if self._tokens < 1:
            return True
        self._tokens -= 1
        return False
