"""A rate that may change at any time, kept as a debt: what has passed and is not yet paid off."""

from __future__ import annotations

import math
from typing import Final

CATCH_UP_S: Final = 0.05
"""How much of an unused rate may be made up for: a thread that wakes late loses nothing by it."""


class Pace:
    """Says how long to wait before more may pass; it has no clock and no lock of its own.

    In any ``t`` seconds at most ``rate * (t + CATCH_UP_S)`` and one amount more pass.

    Args:
        rate: units per second; None lets everything pass.
    """

    def __init__(self, rate: float | None = None) -> None:
        self._rate = rate
        self._owed = 0.0
        self._at = -math.inf

    @property
    def rate(self) -> float | None:
        """Units per second; None for no bound."""
        return self._rate

    def change(self, now: float, rate: float | None) -> None:
        """Another rate from now on; what is owed stays owed."""
        self._settle(now)
        self._rate = rate
        if rate is None:
            self._owed = 0.0

    def wait_s(self, now: float) -> float:
        """Seconds until something may pass; infinite at a rate of 0."""
        self._settle(now)
        if self._rate is None or (self._owed <= 0 and self._rate > 0):
            return 0.0
        return self._owed / self._rate if self._rate > 0 else math.inf

    def take(self, now: float, amount: float) -> None:
        """So much passes now."""
        self._settle(now)
        if self._rate is not None:
            self._owed += amount

    def _settle(self, now: float) -> None:
        if self._rate:
            paid = self._rate * (now - self._at) if self._at > -math.inf else 0.0
            self._owed = max(-self._rate * CATCH_UP_S, self._owed - max(0.0, paid))
        self._at = now
