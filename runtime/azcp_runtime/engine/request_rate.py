"""How many requests a second a throttled account is asked, decided from what it accepted.

The answers tell the account's own rate: what it accepts while it refuses more is what it can take.
So the bound is a little less than that. At each further refusal it falls again, by no more than a third,
and between them it rises along a cubic: fast at first, slow around the rate at which the account last
refused, and then faster and faster. Once it holds nobody back any more it is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

CUT: Final = 0.85
"""Of what was accepted, what is asked for after a refusal."""

RETURN_S: Final = 1.2
"""After so long without a refusal the bound is back where the account last refused."""

SETTLE_S: Final = 0.5
"""Refusals this soon after a cut answer requests from before it; and so long the account is watched
before the first one."""

_MOST_AT_ONCE: Final = 0.7
_DOUBLE_S: Final = 0.25
_IDLE_FACTOR: Final = 4.0


@dataclass(frozen=True, slots=True)
class RequestRate:
    """The cluster's bound.

    Attributes:
        limit: requests per second; None for no bound.
        peak: what the account accepted when it last refused.
        calm_s: seconds since then in which it accepted requests.
        since_cut_s: seconds since the bound was last lowered.
        watched_s: seconds since the account began to refuse, as long as there is no bound.
    """

    limit: float | None = None
    peak: float = 0.0
    calm_s: float = 0.0
    since_cut_s: float = SETTLE_S
    watched_s: float | None = None


def adapted(
    state: RequestRate, passed_s: float, *, accepted_per_s: float, refused: int, least: float
) -> RequestRate:
    """The bound after ``passed_s`` more seconds.

    Args:
        state: the bound so far.
        passed_s: seconds since it was decided.
        accepted_per_s: requests that the account now accepts each second from all ranks.
        refused: requests that it refused with 503 or 429 in these seconds.
        least: never fewer requests per second than this.
    """
    if state.limit is None:
        return _watched(state, passed_s, accepted_per_s, refused, least)
    since_cut_s = state.since_cut_s + passed_s
    if refused:
        if since_cut_s < SETTLE_S:
            return replace(state, since_cut_s=since_cut_s)
        # What was accepted lags behind a bound that rises, and is little where ranks were busy otherwise.
        believed = max(accepted_per_s, state.limit * _MOST_AT_ONCE / CUT)
        return _cut(min(state.limit, believed), least)
    # Nothing accepted says nothing about the account: all may be waiting for a Retry-After.
    calm_s = state.calm_s + (passed_s if accepted_per_s > 0 else 0.0)
    limit = max(state.limit, rising(calm_s, state.peak))
    if calm_s > 2 * RETURN_S and limit > _IDLE_FACTOR * max(accepted_per_s, least):
        return RequestRate()
    return RequestRate(limit, state.peak, calm_s, since_cut_s)


def _watched(
    state: RequestRate, passed_s: float, accepted_per_s: float, refused: int, least: float
) -> RequestRate:
    if state.watched_s is None:
        return replace(state, watched_s=0.0) if refused else state
    watched_s = state.watched_s + passed_s
    return replace(state, watched_s=watched_s) if watched_s < SETTLE_S else _cut(accepted_per_s, least)


def _cut(accepted_per_s: float, least: float) -> RequestRate:
    peak = max(least, accepted_per_s)
    return RequestRate(max(least, CUT * peak), peak, 0.0, 0.0)


def rising(calm_s: float, peak: float) -> float:
    """The bound after so many seconds without a refusal: a cubic through CUT * peak and peak."""
    at = min(calm_s / RETURN_S, 2.0)
    cubic = peak * (1.0 + (1.0 - CUT) * (at - 1.0) ** 3)
    return float(cubic * 2.0 ** (max(0.0, calm_s - 2 * RETURN_S) / _DOUBLE_S))
