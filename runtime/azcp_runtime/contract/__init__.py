"""What the toolkit and the runtime agree on: exit codes, errors, paths and environment names.

Standard library only: the toolkit imports this package and nothing else of the runtime.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar, Final


class ExitCode(IntEnum):
    """The exit codes of azcp-distribute; scripts branch on them."""

    DONE = 0
    FAULT = 1
    """A fault of azcp-distribute itself, told with a traceback."""
    USAGE = 2
    LIST = 3
    PLAN = 4
    DOWNLOAD = 5
    BROADCAST = 6
    VERIFY = 7
    PREFLIGHT = 8
    RESUMABLE = 75
    """sysexits.h EX_TEMPFAIL: incomplete, and the same command goes on from here."""


class AzcpError(Exception):
    """A failure that ends the run with one line: what happened, the likely cause, what to do."""

    exit_code: ClassVar[ExitCode] = ExitCode.USAGE

    def __init__(self, what: str, *, cause: str = "", remedy: str = "") -> None:
        self.what = what
        self.cause = cause
        self.remedy = remedy
        super().__init__(what)

    def __str__(self) -> str:
        """One line for stderr."""
        cause = f" ({self.cause})" if self.cause else ""
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{self.what}{cause}{remedy}"


class UsageError(AzcpError):
    """An option, an argument or the world size is wrong."""


class ListError(AzcpError):
    """The source could not be listed, or it holds names that no file can have."""

    exit_code = ExitCode.LIST


class PlanError(AzcpError):
    """The work cannot be laid out within the limits given."""

    exit_code = ExitCode.PLAN


class DownloadError(AzcpError):
    """Bytes could not be read from the source."""

    exit_code = ExitCode.DOWNLOAD


class WriteError(AzcpError):
    """Bytes could not be written to the destination."""

    exit_code = ExitCode.DOWNLOAD


class BroadcastError(AzcpError):
    """The fabric carried something else than the plan says, or nothing at all."""

    exit_code = ExitCode.BROADCAST


class VerifyError(AzcpError):
    """The files differ between nodes, or from the Content-MD5 stored with the blob."""

    exit_code = ExitCode.VERIFY


class PreflightError(AzcpError):
    """Something that would fail later was found before the first byte."""

    exit_code = ExitCode.PREFLIGHT


class InterruptedRunError(AzcpError):
    """A signal ended the run; whole files stay, and the same command goes on."""

    exit_code = ExitCode.RESUMABLE


class CredentialEndedError(AzcpError):
    """The right to read ended in the middle; with a new one the same command goes on."""

    exit_code = ExitCode.RESUMABLE


STATE_DIR: Final = ".azcp"
"""Folder of the runtime's own in a destination; never part of a data set."""

PARTIAL_PREFIX: Final = ".azcp-partial-"
"""How the name of an unfinished file begins; never part of a data set."""

ENV_SAS: Final = "AZCP_SAS"
"""A shared access signature, with or without its leading question mark."""

ENV_ACCOUNT_KEY: Final = "AZURE_STORAGE_KEY"
"""The account's shared key, base64; the name that the az command line uses."""

ENV_CONNECTION_STRING: Final = "AZURE_STORAGE_CONNECTION_STRING"
"""The account's connection string, with AccountKey or SharedAccessSignature."""

ENV_FILE_SUFFIX: Final = "_FILE"
"""After one of the three names above: a file that holds the value, such as a mounted Secret's."""

ENV_PROGRESS: Final = "AZCP_PROGRESS"
"""live, lines or none: overrides what standard error being a terminal decides."""

ENV_SIMULATE_NODES: Final = "AZCP_SIMULATE_NODES"
"""Tests and the demo only: treat the ranks of one machine as so many nodes, each with a
destination of its own, DEST/node0 and so on."""

REPORT_SCHEMA: Final = 1
"""Version of the JSON that --report writes."""
