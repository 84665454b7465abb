"""Runs one of the image's own commands: bounded in time and output, in the environment that the base has."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azcp_runtime.source.names import shown

POLL_S: Final = 0.02
_TAIL_BYTES: Final = 2000
_GRACE_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where the self test runs.

    Args:
        work: a folder of its own; the only one that it writes to.
        env: the container's, with all that the base has put there.
    """

    work: Path
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended.

    Args:
        code: its exit code; None where it had to be ended.
        output: the last that it said, fit for a terminal.
    """

    code: int | None
    output: str

    def __str__(self) -> str:
        """For a report."""
        how = "did not end in time" if self.code is None else f"ended with {self.code}"
        return f"{how}: {self.output}" if self.output else how


def run(argv: Sequence[str], where: Surroundings, limit_s: float, meanwhile: Callable[[], None]) -> Ended:
    """Run a command to its end; `meanwhile` is called again and again until then.

    Args:
        argv: the command.
        where: its environment, and where its output lies meanwhile.
        limit_s: after that it is ended.
        meanwhile: looks at what runs.
    """
    with started(argv, where) as (process, log):
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            meanwhile()
            try:
                return Ended(process.wait(POLL_S), tail(log))
            except subprocess.TimeoutExpired:
                continue
        return Ended(None, tail(log))


@contextmanager
def started(argv: Sequence[str], where: Surroundings) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A command that does not outlive the block, and the file with its output."""
    log = where.work / "output"
    with log.open("wb") as stream:
        process = subprocess.Popen(  # noqa: S603 - our own command, an argument list
            list(argv), env=dict(where.env), stdin=subprocess.DEVNULL, stdout=stream, stderr=stream
        )
    try:
        yield process, log
    finally:
        process.terminate()
        try:
            process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def tail(log: Path) -> str:
    """The last of an output, on one line."""
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        return shown(b" | ".join(line for line in stream.read().splitlines() if line.strip()))
