"""What a refusal by the account means, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from azcp_runtime.contract import DownloadError

_CODE: Final = re.compile(r"<Code>([A-Za-z0-9]{1,80})</Code>")

_BY_CODE: Final = {
    "AuthorizationPermissionMismatch": "the identity lacks a role; "
    "assign Storage Blob Data Reader on the account",
    "AuthorizationFailure": "the network rules of the account or the scope of the SAS forbid it; "
    "check its firewall and private endpoint",
    "AuthenticationFailed": "the signature, key or token is wrong or has expired; "
    "check the SAS's se= and this clock",
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


def error_code(headers: Mapping[str, str], body: str) -> str:
    """The service's error code from a response, or an empty string."""
    header = headers.get("x-ms-error-code", "")
    # A header says what a server likes; only what looks like a code reaches a message.
    match = re.fullmatch(r"[A-Za-z0-9]{1,80}", header) or _CODE.search(body)
    return match[match.lastindex or 0] if match else ""


def remedy_for(status: int, code: str) -> str:
    """What to do after a refusal."""
    return _BY_CODE.get(code) or _BY_STATUS.get(status, "")


def refusal(name: str, status: int, headers: Mapping[str, str], body: str) -> DownloadError:
    """The error for a blob that was not delivered; neither URL nor body is repeated, for the SAS's sake."""
    code = error_code(headers, body)
    what = f"{name}: HTTP {status}{f' {code}' if code else ''}"
    return DownloadError(what, remedy=remedy_for(status, code))
