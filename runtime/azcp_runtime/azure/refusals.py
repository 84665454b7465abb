"""What a refusal by the account means, and what to do about it."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final

from azcp_runtime.azure.forbidden import remedy_of_network
from azcp_runtime.azure.sas import utc
from azcp_runtime.contract import AzcpError, CredentialEndedError, DownloadError

CARRY_ON: Final = "what is here stays: the same command goes on from there"

_CODE: Final = re.compile(r"<Code>([A-Za-z0-9]{1,80})</Code>")
_DETAIL: Final = re.compile(r"<AuthenticationErrorDetail>(.{1,2000}?)</AuthenticationErrorDetail>", re.DOTALL)
_EXPIRY: Final = re.compile(r"Expiry \[([A-Za-z0-9,: ]{1,40})\]")
_FRAME: Final = re.compile(r"Start \[([A-Za-z0-9,: ]{1,40})\].{1,80}Current \[([A-Za-z0-9,: ]{1,40})\]")
_FORBIDDEN: Final = 403
_MUCH_SKEW_S: Final = 300.0

_NO_ROLE: Final = "the identity lacks a role; assign it Storage Blob Data Reader on the account or container"
_NO_PERMISSION: Final = "the SAS lacks a permission; it needs sp=rl"
_BY_CODE: Final = {
    "AuthorizationSourceIPMismatch": "the SAS is bound to other addresses (sip=) than this machine's",
    "AuthorizationProtocolMismatch": "the SAS is for https only (spr=https)",
    "AuthorizationServiceMismatch": "the SAS is not for the Blob service (ss=b)",
    "AuthorizationResourceTypeMismatch": "the SAS is not for containers and blobs (srt=co)",
    "KeyBasedAuthenticationNotPermitted": "the account forbids keys and what they sign; use an identity",
    "AccountIsDisabled": "the account is disabled; ask its owner",
    "NoAuthenticationInformation": "the container is not public; give a SAS, a key or an identity",
    "PublicAccessNotPermitted": "the account forbids anonymous reads; give a SAS, a key or an identity",
    "BlobArchived": "the blob is archived; rehydrate it first",
    "InvalidAuthenticationInfo": "the token or signature was not accepted; "
    "check the identity, its tenant and this clock",
}
_BY_STATUS: Final = {
    401: "the credential was not accepted; check which identity is used",
    403: "access is denied; check the SAS's permissions (r and l), the role, the firewall",
    404: "it is gone; was it deleted after the listing?",
    409: "its state forbids reading, such as the archive tier",
    412: "it changed after the listing; run again when nobody writes to it",
}
_BY_DETAIL: Final = (
    (("time frame", "expiry time"), "the SAS has expired or is not valid yet; make a new one"),
    (("did not match",), "the signature is wrong: another account's or a rotated key, or a SAS cut short"),
    (("request date header", "not within"), "this clock is wrong; set it by NTP"),
    (("access policy",), "the stored access policy (si=) of the SAS is gone or has ended; make a new SAS"),
    (("delegation key", "signed oid", "skoid"), "the user delegation key of the SAS is no longer valid"),
)


@dataclass(frozen=True, slots=True)
class Asker:
    """Who was refused.

    Attributes:
        kind: sas, key, identity or anonymous.
        account_url: whom it asked.
        expires: when the SAS ends; None where that is not known.
        by_policy: whether a stored access policy decides how long the SAS is good for.
    """

    kind: str = ""
    account_url: str = ""
    expires: float | None = None
    by_policy: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """What the account said: status, code, the detail of an AuthenticationFailed, and its clock."""

    status: int
    code: str
    detail: str = ""
    clock: float | None = None


def read_refusal(status: int, headers: Mapping[str, str], body: str) -> Refusal:
    """A refusal out of a response."""
    detail = _DETAIL.search(body)
    return Refusal(status, error_code(headers, body), detail[1] if detail else "", clock_of(headers))


def error_code(headers: Mapping[str, str], body: str) -> str:
    """The service's error code from a response, or an empty string."""
    header = headers.get("x-ms-error-code", "")
    # A header says what a server likes; only what looks like a code reaches a message.
    match = re.fullmatch(r"[A-Za-z0-9]{1,80}", header) or _CODE.search(body)
    return match[match.lastindex or 0] if match else ""


def clock_of(headers: Mapping[str, str]) -> float | None:
    """The time of the server that answered."""
    return _parsed(headers.get("Date", ""))


def _parsed(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


def remedy_for(refused: Refusal, asker: Asker, now: float) -> str:
    """What to do after a refusal."""
    if refused.code == "AuthorizationPermissionMismatch":
        return _NO_PERMISSION if asker.kind == "sas" else _NO_ROLE
    if refused.code == "AuthorizationFailure":
        return remedy_of_network(asker.kind, asker.account_url)
    if refused.code == "AuthenticationFailed":
        return _authentication(refused, asker, now)
    skewed = _skew(refused, now) if refused.code == "InvalidAuthenticationInfo" else ""
    return skewed or _BY_CODE.get(refused.code) or _BY_STATUS.get(refused.status, "")


def refusal(name: str, refused: Refusal, asker: Asker) -> AzcpError:
    """The error for a blob that was not delivered; neither URL nor body is repeated, for the SAS's sake."""
    now = time.time()
    what = f"{name}: HTTP {refused.status}{f' {refused.code}' if refused.code else ''}"
    if has_ended(refused, asker, now):
        ended = _ended_at(refused, asker)
        is_over = ended is not None and ended <= (refused.clock or now)
        when = f"the SAS expired at {utc(ended)}" if ended and is_over else "the SAS expired or was withdrawn"
        return CredentialEndedError(f"{what}: {when}", remedy=f"make a new SAS; {CARRY_ON}")
    return DownloadError(what, remedy=remedy_for(refused, asker, now))


def has_ended(refused: Refusal, asker: Asker, now: float) -> bool:
    """Whether a SAS that was good for the listing has come to its end."""
    if asker.kind != "sas" or refused.status != _FORBIDDEN:
        return False
    if asker.expires is not None and (refused.clock or now) >= asker.expires:
        return True  # whatever the code is: Azurite has another one than the service
    if refused.code != "AuthenticationFailed":
        return False
    if _not_yet(refused):
        return False
    by_time = ("time frame", "access policy", "delegation key")
    return asker.by_policy or any(word in refused.detail.lower() for word in by_time)


def _not_yet(refused: Refusal) -> str:
    """When a SAS begins, by the account's clock, where it has not begun; else empty."""
    found = _FRAME.search(refused.detail)
    start, current = (_parsed(found[1]), _parsed(found[2])) if found else (None, None)
    if start is None or current is None or current >= start:
        return ""
    return f"the SAS begins at {utc(start)} (st=), and the account's clock says {utc(current)}"


def _ended_at(refused: Refusal, asker: Asker) -> float | None:
    """When a SAS ended: as it says itself, or as the account says of its policy."""
    found = _EXPIRY.search(refused.detail)
    return asker.expires or (_parsed(found[1]) if found else None)


def _authentication(refused: Refusal, asker: Asker, now: float) -> str:
    if skewed := _skew(refused, now):
        return skewed
    if too_early := _not_yet(refused):
        return f"{too_early}; wait, or make one without st="
    for words, remedy in _BY_DETAIL:
        if any(word in refused.detail.lower() for word in words):
            return remedy
    if asker.expires is not None and (refused.clock or now) >= asker.expires:
        return f"the SAS expired at {utc(asker.expires)}; make a new one"
    return "the signature, key or token is wrong or has expired; check the SAS's se= and this clock"


def _skew(refused: Refusal, now: float) -> str:
    """The difference of the clocks, where it is the reason."""
    ahead = now - refused.clock if refused.clock is not None else 0.0
    if abs(ahead) < _MUCH_SKEW_S:
        return ""
    side = "ahead of" if ahead > 0 else "behind"
    return f"this clock is {abs(ahead):.0f} s {side} the account's; set it by NTP"
