"""The wait for the commit: as long as the disk works it may take its time, a dead disk is told."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from azcp_runtime.contract import WriteError
from azcp_runtime.disk.activity import writes_completed
from azcp_runtime.disk.commit import Committer
from azcp_runtime.mpi.backoff import Backoff

_LOOK_EVERY_S: Final = 0.5


class DiskWatch:
    """Finds out that files get no names any more and the device completes no write.

    A file system without a device of this machine is never given up: flushing it may take any time,
    and nothing tells whether it goes on.

    Args:
        dest: the destination.
        committer: gives files their names.
        stall_timeout_s: for how long nothing may happen.
    """

    def __init__(self, dest: Path, committer: Committer, stall_timeout_s: float) -> None:
        self._dest = dest
        self._committer = committer
        self._stall_timeout_s = stall_timeout_s
        self._seen: tuple[int, tuple[int, ...] | None] | None = None
        self._seen_at = self._looked_at = time.monotonic()

    def look(self, now: float) -> None:
        """To be called often.

        Raises:
            WriteError: nothing has happened for too long.
        """
        if now - self._looked_at < _LOOK_EVERY_S:
            return
        was_paused = now - self._looked_at > 2 * _LOOK_EVERY_S  # this process itself was stopped
        self._looked_at = now
        writes = writes_completed(self._dest)
        seen = (self._committer.committed, writes)
        if was_paused or writes is None or seen != self._seen:
            self._seen, self._seen_at = seen, now
        if now - self._seen_at > self._stall_timeout_s:
            raise WriteError(
                f"{self._dest}: nothing was written for {self._stall_timeout_s:.0f} s in the commit",
                cause="a disk that does not answer",
                remedy="look at that disk; --stall-timeout sets the limit",
            )


def settle(committer: Committer, watch: DiskWatch, hear: Callable[[], object]) -> None:
    """Return when all files have their names, and take part meanwhile in what the ranks tell each other.

    Raises:
        WriteError: the disk does not answer.
    """
    backoff = Backoff()
    while not committer.finished():
        hear()
        watch.look(time.monotonic())
        backoff.nap()
