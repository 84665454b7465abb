"""What a SAS says of itself, read before anything is asked with it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

from azcp_runtime.contract import PreflightError, UsageError
from azcp_runtime.contract.units import format_seconds, format_size

_ONE_BLOB: Final = {"b": "one blob", "bv": "one version of a blob", "bs": "one snapshot of a blob"}
_BEST_RATE: Final = 25e9
_LIKELY_RATE: Final = 1e9
"""Bytes a second that a node reads at most, and what it reads at least where all is well."""


@dataclass(frozen=True, slots=True)
class Sas:
    """The fields of a SAS that bound what it is good for; times are seconds since 1970.

    Attributes:
        starts: st, or the start of the delegation key; None where it has none.
        expires: se, or the end of the delegation key where that is earlier; None where it has none.
        permissions: sp.
        policy: si, the stored access policy that has what the SAS leaves out.
        resource: sr of a service SAS; empty for an account SAS.
        services: ss of an account SAS.
        types: srt of an account SAS.
        protocol: spr.
        addresses: sip.
    """

    starts: float | None
    expires: float | None
    permissions: str
    policy: str
    resource: str
    services: str
    types: str
    protocol: str
    addresses: str


def parse_sas(text: str) -> Sas:
    """The fields of a SAS.

    Raises:
        UsageError: a field is there twice, or a time is none; neither is repeated.
    """
    pairs = parse_qsl(text, keep_blank_values=True)
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise UsageError("the SAS is malformed", cause="a field is there twice")
    starts = [_time(fields, name) for name in ("st", "skt")]
    ends = [_time(fields, name) for name in ("se", "ske")]
    return Sas(
        starts=max((at for at in starts if at is not None), default=None),
        expires=min((at for at in ends if at is not None), default=None),
        permissions=fields.get("sp", ""),
        policy=fields.get("si", ""),
        resource=fields.get("sr", ""),
        services=fields.get("ss", ""),
        types=fields.get("srt", ""),
        protocol=fields.get("spr", ""),
        addresses=fields.get("sip", ""),
    )


def check_sas(sas: Sas, now: float, *, is_https: bool, lists: bool) -> None:
    """Refuse what the service would refuse.

    Args:
        sas: the SAS.
        now: this clock's time.
        is_https: whether the account is asked over https.
        lists: whether the container will be listed, which needs sp=l.

    Raises:
        PreflightError: it names everything that is wrong with it.
    """
    problems = list(_problems(sas, now, is_https=is_https, lists=lists))
    if problems:
        raise PreflightError(
            f"the SAS cannot read this source: {'; '.join(problems)}",
            remedy="make a SAS for the container with sp=rl that lasts longer than the run",
        )


def _problems(sas: Sas, now: float, *, is_https: bool, lists: bool) -> Iterator[str]:
    if sas.expires is not None and sas.expires <= now:
        yield f"it expired at {utc(sas.expires)}, and this clock says {utc(now)}"
    if sas.starts is not None and sas.starts > now:
        yield f"it is not valid before {utc(sas.starts)}, and this clock says {utc(now)}"
    yield from _missing_permissions(sas, lists=lists)
    yield from _wrong_scope(sas, lists=lists)
    if sas.protocol == "https" and not is_https:
        yield "it is for https only (spr=https)"


def _missing_permissions(sas: Sas, *, lists: bool) -> Iterator[str]:
    # A stored access policy may have the permissions; nobody can know from here.
    if sas.policy and not sas.permissions:
        return
    for letter, what in (("r", "read"), ("l", "list")):
        if letter not in sas.permissions and (lists or letter != "l"):
            yield f"sp={sas.permissions} does not let it {what} (sp={letter})"


def _wrong_scope(sas: Sas, *, lists: bool) -> Iterator[str]:
    if sas.resource in _ONE_BLOB and lists:
        yield f"it is for {_ONE_BLOB[sas.resource]} only (sr={sas.resource})"
    if sas.services and "b" not in sas.services:
        yield f"it is not for the Blob service (ss={sas.services})"
    if sas.types and "o" not in sas.types:
        yield f"it is not for blobs (srt={sas.types}, needed is o)"
    if sas.types and lists and "c" not in sas.types:
        yield f"it is not for listing a container (srt={sas.types}, needed is c)"


def check_lasts(expires: float, now: float, size_bytes: int, nodes: int, rate: int | None) -> str:
    """Refuse a SAS that ends before even the fastest run could.

    Args:
        expires: when it ends.
        now: this clock's time.
        size_bytes: what is to be read from the account.
        nodes: how many nodes read.
        rate: --max-bandwidth in bytes a second.

    Returns:
        A warning where it may end before the run does; else an empty string.

    Raises:
        PreflightError: it will.
    """
    left = expires - now
    least = size_bytes / min(nodes * _BEST_RATE, rate or float("inf"))
    likely = size_bytes / min(nodes * _LIKELY_RATE, rate or float("inf"))
    told = f"the SAS expires {when(expires, now)}"
    if left < least:
        raise PreflightError(
            f"{told}, before {format_size(size_bytes)} can be read",
            cause=f"that takes {format_seconds(least)} at least",
            remedy="make a SAS that lasts longer, or name a file with --sas-file and replace it in time",
        )
    return f"{told}; the download may take {format_seconds(likely)}" if left < 1.25 * likely else ""


def when(at: float, now: float) -> str:
    """A time to come, and how long it is until then."""
    return f"at {utc(at)}, in {format_seconds(max(0.0, at - now))}"


def utc(at: float) -> str:
    """A time as people read it."""
    return dt.datetime.fromtimestamp(at, dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _time(fields: dict[str, str], name: str) -> float | None:
    text = fields.get(name)
    if text is None:
        return None
    try:
        at = dt.datetime.fromisoformat(text)
        return at.replace(tzinfo=at.tzinfo or dt.UTC).timestamp()
    except (ValueError, OverflowError):
        raise UsageError("the SAS is malformed", cause=f"{name} is no time in ISO 8601") from None
