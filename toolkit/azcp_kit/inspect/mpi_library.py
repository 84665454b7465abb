"""Which MPI a library is, and of what version, from the texts inside it."""

from __future__ import annotations

import re
from typing import Final

from azcp_kit.inspect.facts import MpiKind

LIMIT_BYTES: Final = 64 * 2**20
"""Debian's MPICH, the largest seen, has 41 MB."""

NAMES: Final = ("libmpi.so.40", "libmpi.so.12", "libmpich.so.12")
"""Open MPI from 3.0 on; the ABI that MPICH and Intel MPI share; MPICH as Debian calls it."""

PLAIN_NAME: Final = "libmpi.so"
"""Where no library has a version in its name; elsewhere it is a link or a text for the linker."""

# Bounded repetitions, since the bytes are whatever an image holds.
_NUMBER: Final = rb"\d{1,4}\.\d{1,4}(?:\.\d{1,4})?(?:rc\d{1,3}|a\d{1,3}|b\d{1,3})?"
_OPEN_MPI_HELP: Final = re.compile(rb"tells (" + _NUMBER + rb") to dump")
_ALONE: Final = re.compile(rb"\0v?(" + _NUMBER + rb")\0")
_OF_OPEN_MPI: Final = re.compile(rb"\0v(" + _NUMBER + rb")\0")
_OF_INTEL: Final = re.compile(rb"\0(20\d\d\.\d{1,4}(?:\.\d{1,4})?)\0")

# Intel's and others' derive from MPICH and keep some of its texts, so MPICH comes last.
_MARKS: Final = (
    (rb"Intel(R) MPI Library", MpiKind.INTEL, (_OF_INTEL,)),
    (rb"Open MPI", MpiKind.OPEN_MPI, (_OPEN_MPI_HELP, _OF_OPEN_MPI)),
    (rb"MPICH Version:", MpiKind.MPICH, (_ALONE,)),
)


def identify(content: bytes) -> tuple[MpiKind, str]:
    """The kind and the version; the version is empty where no text tells it."""
    for mark, kind, patterns in _MARKS:
        if mark in content:
            matches = (pattern.search(content) for pattern in patterns)
            return kind, next((match[1].decode() for match in matches if match), "")
    return MpiKind.UNKNOWN, ""
