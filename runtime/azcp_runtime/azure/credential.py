"""Which credential speaks to the account, and the pipeline policy that applies it."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from azcp_runtime.contract import ENV_ACCOUNT_KEY, ENV_SAS, UsageError
from azcp_runtime.source.location import BlobLocation

if TYPE_CHECKING:
    from azcp_runtime.azure.bearer import SharedToken, TokenSource

SAS: Final = "sas"
KEY: Final = "key"
IDENTITY: Final = "identity"
ANONYMOUS: Final = "anonymous"


@dataclass(frozen=True, slots=True)
class Secret:
    """What proves the right to read: the kind, and the signature or key where the kind has one.

    Rank 0 finds it and sends it to the other ranks, in memory only.
    """

    kind: str
    value: str = field(default="", repr=False)


def find_secret(location: BlobLocation, kind: str, sas_file: Path | None, env: Mapping[str, str]) -> Secret:
    """The secret for a location: the kind asked for, or the first of SAS, key and identity that is there.

    Args:
        location: the source; its URL may carry a SAS.
        kind: sas, key, identity, anonymous or auto.
        sas_file: a file that holds a SAS.
        env: the environment.

    Raises:
        UsageError: what was asked for is not there or is malformed.
    """
    sas = _sas(location, sas_file, env)
    key = env.get(ENV_ACCOUNT_KEY, "").strip()
    if kind == SAS or (kind == "auto" and sas):
        return Secret(SAS, _required(sas, f"no SAS in {ENV_SAS}, --sas-file or the URL"))
    if kind == KEY or (kind == "auto" and key):
        return Secret(KEY, _checked_key(_required(key, f"no account key in {ENV_ACCOUNT_KEY}")))
    is_https = location.account_url.startswith("https://")
    if kind == IDENTITY and not is_https:
        raise UsageError("--auth identity needs https", cause="a token in plain text is anybody's")
    if kind == IDENTITY or (kind == "auto" and is_https):
        return Secret(IDENTITY)
    return Secret(ANONYMOUS)


def sdk_credential(secret: Secret, account: str) -> Any:  # noqa: ANN401 - a union of the SDK's own types
    """What azure-storage-blob takes as its credential."""
    if secret.kind == SAS:
        from azure.core.credentials import AzureSasCredential

        return AzureSasCredential(secret.value)
    if secret.kind == KEY:
        from azure.core.credentials import AzureNamedKeyCredential

        return AzureNamedKeyCredential(account, secret.value)
    return shared_token() if secret.kind == IDENTITY else None


def auth_policy(secret: Secret, account: str) -> Any | None:  # noqa: ANN401 - azure-core's policies share no base
    """The azure-core policy that signs one request; None where the URL or nobody signs."""
    if secret.kind == KEY:
        # The signing of the Blob service lives in the SDK's own private module; a test pins it.
        from azure.storage.blob._shared.authentication import SharedKeyCredentialPolicy

        return SharedKeyCredentialPolicy(account, secret.value)  # type: ignore[no-untyped-call]
    if secret.kind == IDENTITY:
        from azcp_runtime.azure.bearer import BearerPolicy

        return BearerPolicy(shared_token())
    return None


@cache
def shared_token() -> SharedToken:
    """This process's token, of workload identity, managed identity or az login, whichever is there."""
    from azcp_runtime.azure.bearer import SharedToken

    return SharedToken(_found_credential)


def _found_credential() -> TokenSource:
    from azure.identity import DefaultAzureCredential

    return DefaultAzureCredential(exclude_interactive_browser_credential=True)


def _sas(location: BlobLocation, sas_file: Path | None, env: Mapping[str, str]) -> str:
    text = location.sas
    if sas_file is not None:
        try:
            text = sas_file.read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read the SAS in {sas_file}: {type(error).__name__}") from None
    text = (text or env.get(ENV_SAS, "")).strip().lstrip("?")
    if text and ("sig=" not in text or any(c.isspace() or not c.isascii() for c in text)):
        raise UsageError("the SAS is malformed", cause="it has no sig= field, or white space within")
    return text


def _required(value: str, problem: str) -> str:
    if not value:
        raise UsageError(problem)
    return value


def _checked_key(key: str) -> str:
    try:
        base64.b64decode(key, validate=True)
    except ValueError:  # binascii.Error is one; so is what a non-ASCII character gives
        raise UsageError(f"the account key in {ENV_ACCOUNT_KEY} is not base64") from None
    return key


def environment() -> Mapping[str, str]:
    """The process environment; a seam for tests."""
    return os.environ
