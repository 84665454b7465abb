"""Standard output and error that outlive their readers, and that show no secret.

A summary nobody reads any more, or a log whose disk is full, must not end a transfer.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TextIO

from azcp_runtime.scrub import without_secrets


class Tolerant(io.TextIOBase):
    """A text stream that swallows what its target refuses, for good from the first refusal on."""

    def __init__(self, target: TextIO) -> None:
        self._target = target
        self._is_lost = False

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The target's."""
        return self._target.encoding

    def writable(self) -> bool:
        """Always."""
        return True

    def isatty(self) -> bool:
        """The target's answer."""
        return self._target.isatty()

    def fileno(self) -> int:
        """The target's."""
        return self._target.fileno()

    def write(self, text: str) -> int:
        """All of it, as far as the caller is told."""
        if not self._is_lost:
            try:
                self._target.write(without_secrets(text))
            except OSError:  # a closed pipe, a full disk: there is nowhere left to say so
                self._is_lost = True
        return len(text)

    def flush(self) -> None:
        """As far as the target can still be reached."""
        if not self._is_lost:
            try:
                self._target.flush()
            except OSError:
                self._is_lost = True


def install() -> None:
    """Put tolerant streams in the place of standard output and error, closed ones included."""
    for name in ("stdout", "stderr"):
        target = getattr(sys, name)
        if not isinstance(target, Tolerant):
            # Python has None where the descriptor was closed before the start.
            setattr(sys, name, Tolerant(target or open(os.devnull, "w", encoding="utf-8")))  # noqa: SIM115
