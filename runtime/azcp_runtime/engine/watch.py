"""The pass seen from its main thread: samples for the report, progress on rank 0."""

from __future__ import annotations

import time

from azcp_runtime.engine.fetch import Fetchers
from azcp_runtime.engine.one_pass import BcastTotals
from azcp_runtime.engine.write import Writers
from azcp_runtime.progress import Display, Moved, Samples


class Watch:
    """Called in every turn of the loop; cheap unless a sample or a picture is due.

    Args:
        display: rank 0's display, None on the others.
    """

    def __init__(self, display: Display | None) -> None:
        self._display = display
        self._samples = Samples()
        self._fetchers: Fetchers | None = None
        self._writers: Writers | None = None
        self._bcast = BcastTotals()
        self._shown_at = 0.0
        self.began = 0.0

    def begin(self, fetchers: Fetchers | None, writers: Writers) -> None:
        """The pass begins now, on all ranks together."""
        self._fetchers, self._writers = fetchers, writers
        self.began = time.monotonic()

    def follow(self, totals: BcastTotals) -> None:
        """Where the loop counts what it receives."""
        self._bcast = totals

    def tick(self, now: float) -> None:
        """A turn of the loop at this time."""
        seconds = now - self.began
        if self._samples.due(seconds):
            self._samples.add(seconds, self._moved())
        if self._display and seconds - self._shown_at >= self._display.every_s:
            self._shown_at = seconds
            self._display.show(self._moved(), seconds)

    def end(self) -> None:
        """The pass is over: a last sample and picture."""
        seconds = time.monotonic() - self.began
        self._samples.add(seconds, self._moved())
        if self._display:
            self._display.show(self._moved(), seconds)
            self._display.close()

    def columns(self) -> dict[str, list[float]]:
        """The samples, column by column."""
        rows = self._samples.rows
        return {
            "seconds": [round(seconds, 3) for seconds, _ in rows],
            "fetched": [moved.fetched for _, moved in rows],
            "received": [moved.received for _, moved in rows],
            "written": [moved.written for _, moved in rows],
        }

    def _moved(self) -> Moved:
        return Moved(
            self._fetchers.totals.bytes if self._fetchers else 0,
            self._bcast.received,
            self._writers.totals.bytes if self._writers else 0,
        )
