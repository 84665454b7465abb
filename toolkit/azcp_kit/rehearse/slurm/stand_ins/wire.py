"""What srun's stand-in and the nodes say to each other: frames of a kind, a length and a content."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

TASK: Final = b"T"
"""srun: what to start."""
INPUT: Final = b"I"
"""srun: standard input; nothing in it is its end."""
SIGNAL: Final = b"S"
"""srun: a signal's number for the task."""
OUTPUT: Final = b"O"
ERROR: Final = b"E"
ENDED: Final = b"C"
"""The node: the task's exit code."""

_HEAD: Final = struct.Struct("!cI")
_MOST_BYTES: Final = 16 << 20
FOLDER: Final = "AZCP_REHEARSAL"
"""Names the folder that all nodes share."""


@dataclass(frozen=True, slots=True)
class Job:
    """What all stand-ins know of the job.

    Args:
        number: of it.
        name: the same.
        nodes: their names.
        addresses: HOST:PORT of each.
        token: that lets srun in.
        until_distributed: what comes after phase 1 is left out.
    """

    number: int
    name: str
    nodes: tuple[str, ...]
    addresses: tuple[str, ...]
    token: str
    until_distributed: bool = False


def read_job(folder: Path) -> Job:
    """From the folder that all nodes share."""
    values: dict[str, Any] = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    values |= {name: tuple(values[name]) for name in ("nodes", "addresses")}
    return Job(**values)


class Line:
    """One connection, which several threads may write to."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._file = connection.makefile("rb")

    def send(self, kind: bytes, content: bytes = b"") -> None:
        """One frame.

        Raises:
            OSError: nobody is at the other end.
        """
        with self._lock:
            self._connection.sendall(_HEAD.pack(kind, len(content)) + content)

    def tell(self, kind: bytes, values: Mapping[str, Any]) -> None:
        """One frame with values in it."""
        self.send(kind, json.dumps(values).encode())

    def receive(self) -> tuple[bytes, bytes] | None:
        """The next frame; None where there is no other."""
        try:
            head = self._file.read(_HEAD.size)
            if len(head) < _HEAD.size:
                return None
            kind, size = _HEAD.unpack(head)
            content = self._file.read(size) if size <= _MOST_BYTES else b""
        except (OSError, ValueError):
            # ValueError: another thread has closed this side between two reads.
            return None
        return (kind, content) if len(content) == size else None

    def close(self) -> None:
        """End it, for both sides."""
        # The other side may have been first.
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._file.close()
        self._connection.close()
