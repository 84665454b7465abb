"""What the toolkit asks an injected image to prove about itself, and how the answers come back."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

MODULE: Final = "azcp_runtime.selftest"
"""Run with the private Python: `python3 -I -m azcp_runtime.selftest MARK SUBJECT...`."""


class Subject(StrEnum):
    """One thing to prove; each gives one answer of that name."""

    LIBRARIES = "libraries"
    """What the loader finds for each program and library below /opt/azcp."""

    DISTRIBUTE = "distribute"
    """Two ranks put a small folder at two destinations."""

    SSHD = "sshd"
    """The server lets the job's key in and nothing else."""

    PROCESSES = "processes"
    """What the running ranks, mpirun and the server have mapped; last, since the others start them."""


class Status(StrEnum):
    """How an answer ends."""

    OK = "ok"
    FAIL = "fail"


ANSWER_FIELDS: Final = ("name", "status", "found", "remedy")
"""An answer is one line: the mark, a space, and a JSON object of these strings."""
