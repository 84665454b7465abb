"""One rank's part in sharing the account: the main thread tells of its gate and obeys what is granted."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from azcp_runtime.engine.broker import Broker, Grant, Report
from azcp_runtime.engine.gate import Flow, Gate

_EVERY_S: Final = 0.1
_REPORTS_PER_S: Final = 2000
_QUIET_S: Final = 30.0


class Sharing:
    """What a rank says of its reads and hears of the others'; never waits.

    Args:
        rank: this rank of the world; rank 0 is the broker.
        gate: this rank's gate.
        reads: bytes that have arrived and bytes that are left to read; None where it reads nothing.
        owners: how many ranks read.
        bytes_per_s: --max-bandwidth; None for no bound.
        notice: rank 0's way to say that the account throttles.
    """

    def __init__(
        self,
        rank: int,
        gate: Gate,
        reads: Callable[[], tuple[int, int]] | None,
        *,
        owners: int,
        bytes_per_s: float | None,
        notice: Callable[[str], None],
    ) -> None:
        self._rank = rank
        self._gate = gate
        self._reads = reads
        self._is_paced = bytes_per_s is not None
        self._broker = Broker(max(1, owners), math.inf if bytes_per_s is None else bytes_per_s)
        self._notice = notice
        # A thousand ranks speak less often, so that rank 0 has time for its own work.
        self._every_s = max(_EVERY_S, owners / _REPORTS_PER_S)
        self._due_at = 0.0
        self._grant = 0
        self._refused = 0
        self._had_left = True
        self._noticed_at = -math.inf
        self._is_noticed = False

    def report(self, now: float, *, is_due: bool) -> bytes | None:
        """What rank 0 should know now; always something where a sign of life is due anyway."""
        if not self._reads or (now < self._due_at and not is_due):
            return None
        first, self._due_at = not self._due_at, now + self._every_s
        report, flow = self._look(now)
        news = flow.refused > self._refused or self._had_left != (report.left_bytes > 0)
        is_bound = report.left_bytes > 0 and (self._is_paced or report.may_request < math.inf)
        self._refused, self._had_left = flow.refused, report.left_bytes > 0
        return report.packed() if first or is_due or news or is_bound else None

    def hear(self, rank: int, report: bytes) -> None:
        """On rank 0: what another rank said."""
        self._broker.hear(rank, Report.unpacked(report))

    def obey(self, answer: bytes) -> None:
        """What rank 0 grants."""
        self._apply(Grant.unpacked(answer))

    def answers(self, now: float) -> dict[int, bytes]:
        """On rank 0: what to tell which rank now."""
        if now < self._due_at:
            return {}
        self._due_at = now + self._every_s
        if self._reads:
            self._broker.hear(self._rank, self._look(now)[0])
        grants = self._broker.grants(now)
        if self._rank in grants:
            self._apply(grants.pop(self._rank))
        self._tell(now)
        return {rank: grant.packed() for rank, grant in grants.items()}

    def _look(self, now: float) -> tuple[Report, Flow]:
        arrived, left = self._reads() if self._reads else (0, 0)
        self._gate.adapt(now, arrived)
        flow = self._gate.flow(now)
        if not left and self._is_paced:  # what is not needed any more is the others' at once
            self._gate.limit(self._gate.rates()[0], 0.0)
        requests, size = (math.inf if rate is None else rate for rate in self._gate.rates())
        return Report(
            self._grant,
            requests,
            size,
            flow.accepted_per_s,
            flow.bytes_per_s,
            flow.accepted,
            flow.refused,
            left,
            flow.held,
        ), flow

    def _apply(self, grant: Grant) -> None:
        self._grant = grant.number
        requests, size = (
            None if math.isinf(rate) else rate for rate in (grant.requests_per_s, grant.bytes_per_s)
        )
        self._gate.limit(requests, size)
        self._gate.accepted_by_all = grant.accepted

    def _tell(self, now: float) -> None:
        limit = self._broker.rate.limit
        if (limit is not None) == self._is_noticed:
            return
        if limit is None:
            self._is_noticed = False
            self._notice("the account takes all requests again")
        elif now - self._noticed_at > _QUIET_S:
            self._is_noticed, self._noticed_at = True, now
            self._notice(f"the account throttles; all ranks together now ask {limit:.0f} times a second")
