"""Rank 0's side of sharing the account: it hears what each rank does and grants each its portion."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Final

from azcp_runtime.engine.portions import Need, next_step, portions
from azcp_runtime.engine.request_rate import RequestRate, adapted

_REPORT: Final = struct.Struct("<IddddQQQ?")
_GRANT: Final = struct.Struct("<IddQ")

_HEADROOM: Final = 1.25
"""A rank that no rate holds back is granted so much of what it uses, so that it can speed up."""

_SMALLEST_PART: Final = 0.05
_NOT_WORTH_IT: Final = 0.03
_REPEAT_S: Final = 1.0
_LEAST_PER_S: Final = 8.0
_LEAST_PER_RANK_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Grant:
    """What a rank may ask the account for each second; infinite for no bound.

    Attributes:
        number: counts the grants to this rank; its reports say which one is in force.
        requests_per_s: requests.
        bytes_per_s: bytes.
        accepted: requests that the account has accepted from all ranks so far.
    """

    number: int
    requests_per_s: float
    bytes_per_s: float
    accepted: int

    def packed(self) -> bytes:
        """As a message."""
        return _GRANT.pack(self.number, self.requests_per_s, self.bytes_per_s, self.accepted)

    @classmethod
    def unpacked(cls, message: bytes) -> Grant:
        """From a message."""
        return cls(*_GRANT.unpack(message))


@dataclass(frozen=True, slots=True)
class Report:
    """What one rank does.

    Attributes:
        grant: number of the grant in force.
        may_request: requests per second that it may spend.
        may_read: bytes per second that it may spend.
        accepted_per_s: requests that the account accepts each second.
        bytes_per_s: bytes that it asks for each second.
        accepted: requests accepted since the start.
        refused: requests refused since the start.
        left_bytes: what it has still to read.
        held: whether a rate has held it back.
    """

    grant: int
    may_request: float
    may_read: float
    accepted_per_s: float
    bytes_per_s: float
    accepted: int
    refused: int
    left_bytes: int
    held: bool

    def packed(self) -> bytes:
        """As a message."""
        return _REPORT.pack(
            self.grant,
            self.may_request,
            self.may_read,
            self.accepted_per_s,
            self.bytes_per_s,
            self.accepted,
            self.refused,
            self.left_bytes,
            self.held,
        )

    @classmethod
    def unpacked(cls, message: bytes) -> Report:
        """From a message."""
        return cls(*_REPORT.unpack(message))


class Broker:
    """Divides the account among the ranks that read from it.

    Args:
        owners: how many ranks read.
        bytes_per_s: what they may ask for each second, all together; infinite for no bound.
    """

    def __init__(self, owners: int, bytes_per_s: float) -> None:
        self._owners = owners
        self._bytes_per_s = bytes_per_s
        self._reports: dict[int, Report] = {}
        self._sent: dict[int, Grant] = {}
        self._sent_at: dict[int, float] = {}
        self._refused = 0
        self._decided_at = -math.inf
        self.rate = RequestRate()

    def hear(self, rank: int, report: Report) -> None:
        """What a rank last said of itself."""
        before = self._reports.get(rank)
        self._refused += report.refused - (before.refused if before else 0)
        self._reports[rank] = report

    def grants(self, now: float) -> dict[int, Grant]:
        """What is to be told to which rank; nothing to those whose portion stays as it is."""
        passed_s = now - self._decided_at if self._decided_at > -math.inf else 0.0
        self._decided_at = now
        self.rate = adapted(
            self.rate,
            passed_s,
            accepted_per_s=sum(report.accepted_per_s for report in self._reports.values()),
            refused=self._refused,
            least=max(_LEAST_PER_S, _LEAST_PER_RANK_S * self._owners),
        )
        self._refused = 0
        requests, size = self._requests(), self._bytes()
        accepted = sum(report.accepted for report in self._reports.values())
        told = {}
        for rank, report in self._reports.items():
            last = self._sent.get(rank)
            # One at a time: what a rank may be spending is then one of two known numbers.
            if last and last.number != report.grant:
                continue
            grant = Grant(report.grant + 1, requests[rank], size[rank], accepted)
            if _differs(grant, report) or self._should_know(rank, grant, now):
                told[rank] = self._sent[rank] = grant
                self._sent_at[rank] = now
        return told

    def _should_know(self, rank: int, grant: Grant, now: float) -> bool:
        """Whether a rank that is held back is to hear that the account still serves others."""
        last = self._sent.get(rank)
        return (
            self.rate.limit is not None
            and last is not None
            and grant.accepted > last.accepted
            and now > self._sent_at[rank] + _REPEAT_S
        )

    def _requests(self) -> dict[int, float]:
        limit = self.rate.limit
        if limit is None:
            return dict.fromkeys(self._reports, math.inf)
        return portions(
            limit, {rank: self._need(r, r.accepted_per_s, limit) for rank, r in self._reports.items()}
        )

    def _bytes(self) -> dict[int, float]:
        total = self._bytes_per_s
        if math.isinf(total):
            return dict.fromkeys(self._reports, math.inf)
        # Ranks that have not been heard of yet begin with an even part.
        total -= total / self._owners * max(0, self._owners - len(self._reports))
        needs = {rank: self._need(r, r.bytes_per_s, total) for rank, r in self._reports.items()}
        return next_step(
            total, portions(total, needs), {rank: self._spending(rank) for rank in self._reports}
        )

    def _need(self, report: Report, used: float, total: float) -> Need:
        smallest = _SMALLEST_PART * total / self._owners
        most = math.inf if report.held else max(smallest, _HEADROOM * used)
        return Need(report.left_bytes, most)

    def _spending(self, rank: int) -> float:
        report, last = self._reports[rank], self._sent.get(rank)
        if not last or last.number == report.grant:
            return report.may_read
        return max(report.may_read, last.bytes_per_s)


def _differs(grant: Grant, report: Report) -> bool:
    pairs = ((grant.requests_per_s, report.may_request), (grant.bytes_per_s, report.may_read))
    return any(
        granted != spent
        if math.isinf(granted) or math.isinf(spent)
        else abs(granted - spent) > _NOT_WORTH_IT * max(granted, spent)
        for granted, spent in pairs
    )
