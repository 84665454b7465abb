"""Progress on standard error: a live display on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from azcp_runtime.contract import ENV_PROGRESS
from azcp_runtime.contract.units import format_rate, format_size

_LINE_EVERY_S: Final = 5.0
_DISPLAY_EVERY_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class Moved:
    """Bytes so far on rank 0, through whose node every byte passes."""

    fetched: int
    received: int
    written: int


class Display(Protocol):
    """Something that shows how far the run is."""

    every_s: float

    def show(self, moved: Moved, seconds: float) -> None:
        """The state after so many seconds."""

    def close(self) -> None:
        """The pass is over."""


def choose_display(goal: Moved, env: Mapping[str, str]) -> Display | None:
    """The display for rank 0's standard error, or None where the environment wants none."""
    kind = env.get(ENV_PROGRESS, "live" if sys.stderr.isatty() else "lines")
    if kind == "none":
        return None
    return _Live(goal) if kind == "live" else _Lines(goal.written)


class _Lines:
    """For logs: percent, rates since the last line, time left."""

    every_s = _LINE_EVERY_S

    def __init__(self, total_bytes: int) -> None:
        self._total = total_bytes
        self._before = (Moved(0, 0, 0), 0.0)

    def show(self, moved: Moved, seconds: float) -> None:
        """Write a line."""
        before, then = self._before
        self._before = (moved, seconds)
        span = max(seconds - then, 1e-9)
        missing = max(0, self._total - moved.written)
        remaining = f"{missing * seconds / moved.written:.0f}s left" if moved.written else "time left unknown"
        print(
            f"[progress] {percent(moved.written, self._total):.1f}% "
            f"{format_size(moved.written)} of {format_size(self._total)}, "
            f"fetch {format_rate(moved.fetched - before.fetched, span)}, "
            f"receive {format_rate(moved.received - before.received, span)}, "
            f"write {format_rate(moved.written - before.written, span)}, {remaining}",
            file=sys.stderr,
            flush=True,
        )

    def close(self) -> None:
        """Nothing is left on the screen."""


class _Live:
    """For terminals: three bars, drawn by rich."""

    every_s = _DISPLAY_EVERY_S

    def __init__(self, goal: Moved) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        # mpirun forwards the bytes of rank 0's pipe to its own terminal, so the codes arrive.
        console = Console(stderr=True, force_terminal=True)
        self._progress: Any = Progress(
            TextColumn("{task.description:>8}"),
            BarColumn(),
            DownloadColumn(binary_units=True),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=console,
            auto_refresh=False,
        )
        self._bar = self._progress.add_task("on disk", total=goal.written)
        self._fetch = self._progress.add_task("fetched", total=goal.fetched)
        self._receive = self._progress.add_task("received", total=goal.received)
        self._progress.start()

    def show(self, moved: Moved, seconds: float) -> None:  # noqa: ARG002 - rich keeps the time itself
        """Draw."""
        self._progress.update(self._bar, completed=moved.written)
        self._progress.update(self._fetch, completed=moved.fetched)
        self._progress.update(self._receive, completed=moved.received)
        self._progress.refresh()

    def close(self) -> None:
        """Leave the last picture and give the cursor back."""
        self._progress.refresh()
        self._progress.stop()


class Samples:
    """Bytes moved over time on one rank, thinned out so that any run fits in a few hundred."""

    MOST: Final = 512

    def __init__(self) -> None:
        self._every_s = 0.1
        self._next = 0.0
        self.rows: list[tuple[float, Moved]] = []

    def due(self, seconds: float) -> bool:
        """Whether it is time for another."""
        return seconds >= self._next

    def add(self, seconds: float, moved: Moved) -> None:
        """Keep one more; halve the density when there are too many."""
        self.rows.append((seconds, moved))
        if len(self.rows) > self.MOST:
            self.rows = self.rows[::2]
            self._every_s *= 2
        self._next = seconds + self._every_s


def percent(part: int, whole: int) -> float:
    """Part of whole in percent; all of nothing is 100."""
    return 100.0 * part / whole if whole else 100.0
