"""One name listed and one byte read, as a run would: an account that answers may still let nobody in."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Final

from azcp_runtime.contract import AzcpError
from azcp_runtime.doctor.check import Check, fail, ok, warn
from azcp_runtime.preflight.within import NoAnswerError, within
from azcp_runtime.source.location import BlobLocation
from azcp_runtime.source.names import shown

if TYPE_CHECKING:
    from azcp_runtime.azure.credential import Secret
    from azcp_runtime.source.listing import Entry

_NAME: Final = "source"
_PATIENCE_S: Final = 40.0
_RETRIES: Final = 1
_RETRY_TIME_S: Final = 10.0
_MOST_NAMES: Final = 16
"""Folders and empty blobs may come first; each name is a page of its own."""


def check_first_read(
    location: BlobLocation, secret: Secret, hear: Callable[[], None], patience_s: float = _PATIENCE_S
) -> Check:
    """Whether the first name can be listed and its first byte read; what a run would say if not.

    Args:
        location: the source.
        secret: the credential of a run.
        hear: called meanwhile, so that the others know that this rank lives.
        patience_s: how long it may take.
    """
    try:
        return within(patience_s, lambda: _tried(location, secret), hear)
    except NoAnswerError as error:
        return fail(_NAME, f"{location}: {error}", "check the way to the account, and how busy it is")
    except (OSError, ValueError, LookupError) as error:
        what = shown(os.fsencode(f"{type(error).__name__}: {error}"))
        return fail(_NAME, f"{location}: {what}", "check what answers in the account's name")


def _tried(location: BlobLocation, secret: Secret) -> Check:
    """The look itself; all that a run would end with is a finding here."""
    try:
        names, first = _first(location, secret)
    except AzcpError as error:
        return _failed(error, "")
    if not names:
        return warn(_NAME, f"nothing lies in {location}", "check the container's name")
    if first is None:
        return ok(_NAME, f"lists; among the first names is none to read: {shown(names[0])}")
    try:
        _read_byte(location, secret, first)
    except AzcpError as error:
        return _failed(error, "it lists, but does not read: ")
    return ok(_NAME, f"lists and reads, first name {shown(first.name)}")


def _first(location: BlobLocation, secret: Secret) -> tuple[list[bytes], Entry | None]:
    """The first names, up to one that has bytes and can be read at once; and that one."""
    from azcp_runtime.azure.account import list_account
    from azcp_runtime.azure.retry import RetryLimits
    from azcp_runtime.source.listing import ARCHIVE

    names: list[bytes] = []
    limits = RetryLimits(_RETRIES, _RETRY_TIME_S)
    with closing(list_account(location, secret, limits, page_names=1)) as entries:
        for entry in islice(entries, _MOST_NAMES):
            names.append(entry.name)
            if entry.size and entry.tier != ARCHIVE:
                return names, entry
    return names, None


def _read_byte(location: BlobLocation, secret: Secret, entry: Entry) -> None:
    from azcp_runtime.azure.body import BodyReader
    from azcp_runtime.azure.retry import Retries, RetryLimits

    limits = RetryLimits(_RETRIES, _RETRY_TIME_S)
    with closing(BodyReader(location, secret, limits, Retries(), threading.Event())) as reader:
        reader.read(entry, 0, memoryview(bytearray(1)))


def _failed(error: AzcpError, before: str) -> Check:
    cause = f" ({error.cause})" if error.cause else ""
    return fail(_NAME, f"{before}{error.what}{cause}", error.remedy)
