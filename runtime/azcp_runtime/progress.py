"""Progress on standard error: a live display on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
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

    @property
    def passed(self) -> int:
        """Through this rank, whether its own node needs them or not."""
        return self.fetched + self.received


class Display(Protocol):
    """Something that shows how far the run is."""

    every_s: float

    def show(self, moved: Moved, seconds: float) -> None:
        """The state after so many seconds."""

    def close(self) -> None:
        """The pass is over."""


def choose_display(goal: Moved, env: Mapping[str, str], rails: int = 1) -> Display | None:
    """The display for rank 0's standard error, or None where the environment wants none or nothing moves."""
    kind = env.get(ENV_PROGRESS, "live" if sys.stderr.isatty() else "lines")
    if kind == "none" or not goal.passed:
        return None
    rail = f"rail 0 of {rails}" if rails > 1 else ""
    if kind == "live":
        return _Live(goal, f", {rail}" if rail else "")
    return _Lines(goal, f" on {rail}" if rail else "")


def done_bytes(moved: Moved, goal: Moved) -> int:
    """Bytes that have passed through this rank, without those that its own node has yet to write.

    A node that misses nothing still passes on what the others miss.
    """
    unwritten = max(0, goal.written - moved.written)
    return max(0, min(moved.passed, goal.passed - unwritten))


class _Lines:
    """For logs: percent, rates since the last line, time left; only of what there is to do."""

    every_s = _LINE_EVERY_S

    def __init__(self, goal: Moved, where: str) -> None:
        self._goal = goal
        self._where = where
        self._before = (Moved(0, 0, 0), 0.0)

    def show(self, moved: Moved, seconds: float) -> None:
        """Write a line."""
        before, then = self._before
        self._before = (moved, seconds)
        total, done = self._goal.passed, done_bytes(moved, self._goal)
        remaining = f"{(total - done) * seconds / done:.0f}s left" if done else "time left unknown"
        rates = self._rates(moved, before, max(seconds - then, 1e-9))
        print(
            f"[progress] {percent(done, total):.1f}% {format_size(done)} of {format_size(total)}"
            f"{self._where}, {', '.join((*rates, remaining))}",
            file=sys.stderr,
            flush=True,
        )

    def _rates(self, moved: Moved, before: Moved, span: float) -> Iterator[str]:
        for name, goal, now, then in (
            ("fetch", self._goal.fetched, moved.fetched, before.fetched),
            ("receive", self._goal.received, moved.received, before.received),
            ("write", self._goal.written, moved.written, before.written),
        ):
            if goal:
                yield f"{name} {format_rate(now - then, span)}"

    def close(self) -> None:
        """Nothing is left on the screen."""


class _Live:
    """For terminals: a bar for each of the three that has anything to do, drawn by rich."""

    every_s = _DISPLAY_EVERY_S

    def __init__(self, goal: Moved, where: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        # mpirun forwards the bytes of rank 0's pipe to its own terminal, so the codes arrive.
        console = Console(stderr=True, force_terminal=True)
        self._progress: Any = Progress(
            TextColumn("{task.description:>8}"),
            BarColumn(),
            DownloadColumn(binary_units=True),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=console,
            auto_refresh=False,
        )
        goals = {"on disk": goal.written, "fetched": goal.fetched, "received": goal.received}
        self._bars = {
            name: self._progress.add_task(f"{name}{where}", total=total, rate="")
            for name, total in goals.items()
            if total
        }
        self._progress.start()

    def show(self, moved: Moved, seconds: float) -> None:
        """Draw; the rate in the units of the lines and the summary."""
        done = {"on disk": moved.written, "fetched": moved.fetched, "received": moved.received}
        for name, bar in self._bars.items():
            self._progress.update(bar, completed=done[name])
            task = self._progress.tasks[bar]
            speed = task.finished_speed or task.speed or done[name] / max(seconds, 1e-9)
            self._progress.update(bar, rate=format_rate(round(speed), 1.0))
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
