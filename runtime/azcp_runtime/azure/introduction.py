"""Before the first request: the credential is checked as far as it can be, and it is said whose it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from azure.core.exceptions import AzureError

from azcp_runtime.azure.credential import ANONYMOUS, IDENTITY, KEY, Secret, shared_token
from azcp_runtime.azure.identity import find_identity
from azcp_runtime.azure.sas import check_sas, parse_sas, utc
from azcp_runtime.azure.told_identity import told_identity
from azcp_runtime.contract import ENV_ACCOUNT_KEY, ENV_SAS, ListError
from azcp_runtime.source.location import BlobLocation


def introduce(
    secret: Secret,
    location: BlobLocation,
    env: Mapping[str, str],
    note: Callable[[str], None],
    *,
    lists: bool,
) -> float | None:
    """Check the credential and say which it is, without its secret.

    Args:
        secret: the credential.
        location: the source.
        env: the environment.
        note: says a line on standard error.
        lists: whether the container will be listed.

    Returns:
        When a SAS ends; None for one that does not say so, and for all else.

    Raises:
        PreflightError: the SAS cannot be good for this source now.
        UsageError: the SAS is malformed, or the identity is configured by half.
        ListError: there is no token for the identity.
    """
    if secret.kind == ANONYMOUS:
        return None
    if secret.kind == KEY:
        note(f"reads with the account key of {secret.source}")
        return None
    if secret.kind == IDENTITY:
        note(f"reads as {_identity(secret.which, env)}")
        return None
    return _sas(secret, location, note, lists=lists)


def _sas(secret: Secret, location: BlobLocation, note: Callable[[str], None], *, lists: bool) -> float | None:
    sas, now = parse_sas(secret.value), time.time()
    check_sas(sas, now, is_https=location.account_url.startswith("https://"), lists=lists)
    end = "which does not say when it expires"
    if sas.expires is not None:
        end = f"which expires at {utc(sas.expires)}, in {sas.expires - now:.0f} s"
    note(f"reads with the SAS of {secret.source}, {end}")
    if secret.source == "the URL":
        note(f"every user of this machine can read the SAS in the command line; use {ENV_SAS} or --sas-file")
    return sas.expires


def _identity(which: str, env: Mapping[str, str]) -> str:
    identity = find_identity(which, env)
    try:
        info = shared_token(which).get_token_info()
    except AzureError as error:
        first_line = str(error).strip().partition("\n")[0].rstrip(".")
        raise ListError(
            f"no token for {identity}: {first_line}",
            remedy=f"check the identity, set {ENV_SAS} or {ENV_ACCOUNT_KEY}, sign in with az login, "
            "or use --auth anonymous",
        ) from None
    told = told_identity(info.token)
    return f"{identity}{f': {told}' if told else ''}; token until {utc(info.expires_on)}"
