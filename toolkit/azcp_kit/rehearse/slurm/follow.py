"""Follows a job from the queue to its end, and tells what becomes of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azcp_kit.rehearse.conduct import Report
from azcp_kit.rehearse.slurm.said import Said
from azcp_kit.rehearse.slurm.submit import JobState, cancel, job_state
from azcp_kit.shown import shown

_POLL_S: Final = 0.5
_CANCEL_S: Final = 60.0
DISTRIBUTED: Final = "the data is there, and no more was asked for"
_LOG_S: Final = 5.0
"""How long the end of a log may take through the file system of the site."""


@dataclass(frozen=True, slots=True)
class Followed:
    """What became of a job.

    Args:
        state: the last that Slurm told; None for nothing.
        nodes: on which it ran at last.
        started_s, ended_s: since the start of the rehearsal; started_s is None for never.
        given_up: why the rehearsal has ended it; empty where it has not.
    """

    state: JobState | None
    nodes: str
    started_s: float | None
    ended_s: float
    given_up: str


class Follower:
    """Follows one job."""

    def __init__(
        self, number: int, log: Path, said: Said, clock: Callable[[], float], report: Report
    ) -> None:
        self._number = number
        self._log = log
        self._said = said
        self._clock = clock
        self._report = report
        self._read_bytes = 0
        self._state: JobState | None = None
        self._nodes = ""
        self._started_s: float | None = None

    def follow(self, timeout_s: float, *, until_distributed: bool) -> Followed:
        """Until it has ended, or is ended: it has taken too long, or has done all that is asked for."""
        given_up, end_by = "", 0.0
        while True:
            self._look()
            now = self._clock()
            if (self._state is not None and self._state.is_over) or (given_up and now > end_by):
                break
            if (
                reason := ""
                if given_up
                else self._reason(now, timeout_s, until_distributed=until_distributed)
            ):
                given_up, end_by = reason, now + _CANCEL_S
                cancel(self._number)
            time.sleep(_POLL_S)
        self._read_rest()
        return Followed(self._state, self._nodes, self._started_s, now, given_up)

    def _reason(self, now: float, timeout_s: float, *, until_distributed: bool) -> str:
        """Why the job is ended by the rehearsal; nothing where it is not."""
        if until_distributed and self._said.is_distributed:
            return DISTRIBUTED
        return f"not done within {timeout_s:.0f} s" if now > timeout_s else ""

    def _look(self) -> None:
        state = job_state(self._number)
        if state is not None:
            self._tell(state)
            self._nodes = state.nodes or self._nodes
        self._read()

    def _tell(self, state: JobState) -> None:
        before, self._state = self._state, state
        now = self._clock()
        if before is not None and (before.state, before.reason) == (state.state, state.reason):
            return
        why = f" ({state.reason})" if state.reason != "None" else ""
        on = f" on {state.nodes}" if state.state == "RUNNING" else ""
        self._report(now, f"job {self._number}", shown(f"{state.state}{on}{why}"))
        if state.state == "RUNNING" and self._started_s is None:
            self._started_s = now

    def _read(self) -> bool:
        """What has been added to the log; whether anything was."""
        try:
            with self._log.open("rb") as file:
                file.seek(self._read_bytes)
                piece = file.read()
        except FileNotFoundError:
            return False
        self._read_bytes += len(piece)
        self._said.take(piece)
        return bool(piece)

    def _read_rest(self) -> None:
        until = time.monotonic() + _LOG_S
        while not self._read_bytes and time.monotonic() < until:
            if not self._read():
                time.sleep(_POLL_S)
        self._read()
        self._said.end()
