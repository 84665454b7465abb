"""What a job's leader and its members say to each other, a line at a time, for as long as the job runs."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

BEAT_S: Final = 5.0
SILENCE_S: Final = 40.0
"""Who has not been heard for so long is lost. Azure freezes a machine for up to 30 s to move it."""

_LONGEST_TEXT: Final = 400
_SOCKET: Final = "member.sock"


class Word(StrEnum):
    """The first word of a line."""

    HELD = "held"
    """The member: it follows this leader now."""

    BUSY = "busy"
    """The member: it follows another one."""

    BEAT = "beat"
    """Either: it lives. The member answers the leader's."""

    WHOLE = "whole"
    """The leader: the data is in place on every node."""

    DONE = "done"
    """The member: it has done what was left to do then."""

    FAILED = "failed"
    """The member: it could not, and why."""

    STOPPED = "stopped"
    """The member: somebody has told it to end."""

    END = "end"
    """The leader's last word: the exit code, and what it says about it."""

    BYE = "bye"
    """The member's."""


@dataclass(frozen=True, slots=True)
class Line:
    """A word, and where it applies an exit code and a text of one line."""

    word: Word
    code: int = 0
    text: str = ""

    def encode(self) -> bytes:
        """As it is sent."""
        text = "".join(c if c.isprintable() else " " for c in self.text)[:_LONGEST_TEXT]
        return f"{self.word} {self.code} {text}\n".encode()


def decode(data: bytes) -> Line | None:
    """The line; None where it is none of ours, such as a greeting of the node's shell."""
    word, _, rest = data.decode("utf-8", "replace").strip().partition(" ")
    code, _, text = rest.partition(" ")
    if word not in set(Word) or not code.isdecimal():
        return None
    return Line(Word(word), int(code), text)


@contextmanager
def socket_path(state: Path) -> Iterator[str]:
    """Where the member is spoken to on its own node, by a name that fits the 108 bytes of unix(7)."""
    folder = os.open(state, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{_SOCKET}"
    finally:
        os.close(folder)


def member_socket(state: Path) -> socket.socket:
    """A socket that listens there without blocking; what an earlier start has left is replaced."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    (state / _SOCKET).unlink(missing_ok=True)
    with socket_path(state) as path:
        listening.bind(path)
    listening.listen()
    listening.setblocking(False)
    return listening
