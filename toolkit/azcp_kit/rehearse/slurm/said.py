"""What a job says: each line with its moment, without any secret, and the phases in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from azcp_kit.rehearse.account import SIGNATURE, Emulator
from azcp_kit.rehearse.conduct import Report
from azcp_kit.rehearse.marks import SCRIPT_CHATTER, SCRIPT_FINISHED, SCRIPT_SUMMARY
from azcp_kit.rehearse.outcome import Line
from azcp_kit.shown import shown

_LONGEST: Final = 400
_TAIL_LINES: Final = 20
_MOST_LINES: Final = 5000


class Said:
    """The lines, as they come."""

    def __init__(self, emulator: Emulator, clock: Callable[[], float], report: Report) -> None:
        self.lines: list[Line] = []
        self.distributed_s: float | None = None
        self._key = emulator.key
        self._clock = clock
        self._report = report
        self._rest = b""

    @property
    def is_distributed(self) -> bool:
        """Whether phase 1 has told its end."""
        return self.distributed_s is not None

    def take(self, piece: bytes) -> None:
        """Some more of it, which may end inside of a line."""
        *whole, self._rest = (self._rest + piece).split(b"\n")
        for line in whole:
            self._add(line.decode(errors="replace").rstrip("\r"))

    def end(self) -> None:
        """There is no more."""
        if self._rest:
            self.take(b"\n")

    def clean(self, text: str) -> str:
        """Without a secret, and fit for a terminal."""
        text = text.replace(self._key, "***") if self._key else text
        return shown(SIGNATURE.sub("sig=***", text), _LONGEST)

    def summary(self) -> tuple[Line, ...]:
        """What azcp-launch, azcp-distribute and the script itself say of the phases."""
        return tuple(line for line in self.lines if SCRIPT_SUMMARY.match(line.text))

    def tail(self, *, has_failed: bool) -> tuple[Line, ...]:
        """The last lines; what is no failure is told without what the summary has."""
        if has_failed:
            return tuple(self.lines[-_TAIL_LINES:])
        told = [
            line
            for line in self.lines
            if not SCRIPT_SUMMARY.match(line.text) and not SCRIPT_CHATTER.match(line.text)
        ]
        return tuple(told[-_TAIL_LINES:])

    def _add(self, text: str) -> None:
        if not text.strip():
            return
        line = Line(self._clock(), self.clean(text))
        self.lines.append(line)
        del self.lines[:-_MOST_LINES]
        if self.distributed_s is None and SCRIPT_FINISHED.match(line.text):
            self.distributed_s = line.at_s
        if SCRIPT_SUMMARY.match(line.text):
            self._report(line.at_s, "script", line.text)


def first_reason(code: int, lines: Sequence[Line]) -> str:
    """Why a script has failed, in a line: the last that azcp itself or Slurm has said."""
    told = [line.text for line in lines if re.match(r"(?:azcp|srun|slurmstepd|sbatch)[\w-]*: ", line.text)]
    return f"the script has ended with {code}" + (f": {told[-1]}" if told else "")
