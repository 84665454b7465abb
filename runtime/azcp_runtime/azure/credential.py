"""Which credential speaks to the account, and the pipeline policy that applies it."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from azcp_runtime.azure.holder import HeldSas, Holder, SasPolicy, checked_sas, read_sas
from azcp_runtime.azure.identity import IDENTITIES, find_identity, make_source
from azcp_runtime.azure.refusals import Asker
from azcp_runtime.azure.sas import parse_sas
from azcp_runtime.contract import (
    ENV_ACCOUNT_KEY,
    ENV_CONNECTION_STRING,
    ENV_FILE_SUFFIX,
    ENV_SAS,
    UsageError,
)
from azcp_runtime.scrub import hide
from azcp_runtime.source.location import BlobLocation

if TYPE_CHECKING:
    from azcp_runtime.azure.bearer import SharedToken

SAS: Final = "sas"
KEY: Final = "key"
IDENTITY: Final = "identity"
ANONYMOUS: Final = "anonymous"


@dataclass(frozen=True, slots=True)
class Secret:
    """What proves the right to read: the kind, and the signature or key where the kind has one.

    Rank 0 finds it and sends it to the other ranks, in memory only.

    Attributes:
        kind: sas, key, identity or anonymous.
        value: the SAS or the key.
        source: where it was found, for messages.
        file: the file that holds the SAS, which is read again once it is refused.
        which: workload, managed or cli; empty for the identity that is configured.
    """

    kind: str
    value: str = field(default="", repr=False)
    source: str = ""
    file: Path | None = None
    which: str = ""


def find_secret(location: BlobLocation, kind: str, sas_file: Path | None, env: Mapping[str, str]) -> Secret:
    """The secret for a location: the kind asked for, or the first of SAS, key and identity that is there.

    Args:
        location: the source; its URL may carry a SAS.
        kind: sas, key, identity, workload, managed, cli, anonymous or auto.
        sas_file: a file that holds a SAS.
        env: the environment.

    Raises:
        UsageError: what was asked for is not there or is malformed.
    """
    connection = _connection(location.account, env)
    sas = _sas(location, sas_file, env, connection)
    key = _key(env, connection)
    if kind == SAS or (kind == "auto" and sas):
        return sas or _missing(f"no SAS in {ENV_SAS}, --sas-file or the URL")
    if kind == KEY or (kind == "auto" and key):
        return key or _missing(f"no account key in {ENV_ACCOUNT_KEY}")
    is_https = location.account_url.startswith("https://")
    is_identity = kind == IDENTITY or kind in IDENTITIES
    if is_identity and not is_https:
        raise UsageError(f"--auth {kind} needs https", cause="a token in plain text is anybody's")
    if is_identity or (kind == "auto" and is_https):
        return Secret(IDENTITY, which=kind if kind in IDENTITIES else "")
    return Secret(ANONYMOUS)


def sdk_credential(secret: Secret, account: str) -> Any:  # noqa: ANN401 - a union of the SDK's own types
    """What azure-storage-blob takes as its credential."""
    if secret.kind == SAS:
        from azure.core.credentials import AzureSasCredential

        return AzureSasCredential(secret.value)
    if secret.kind == KEY:
        from azure.core.credentials import AzureNamedKeyCredential

        return AzureNamedKeyCredential(account, secret.value)
    return shared_token(secret.which) if secret.kind == IDENTITY else None


def auth_policy(secret: Secret, account: str, holder: Holder | None = None) -> Any | None:  # noqa: ANN401 - azure-core's policies share no base
    """The azure-core policy that signs one request; None where nobody signs.

    Args:
        secret: the credential.
        account: the account's name.
        holder: who renews it; None for this process itself.
    """
    if secret.kind == KEY:
        # The signing of the Blob service lives in the SDK's own private module; a test pins it.
        from azure.storage.blob._shared.authentication import SharedKeyCredentialPolicy

        return SharedKeyCredentialPolicy(account, secret.value)  # type: ignore[no-untyped-call]
    holder = holder or own_holder(secret)
    if secret.kind == IDENTITY and holder:
        from azcp_runtime.azure.bearer import BearerPolicy

        return BearerPolicy(holder)
    return SasPolicy(holder) if holder else None


def own_holder(secret: Secret) -> Holder | None:
    """Who renews the secret in this process; None for a secret that stays what it is."""
    if secret.kind == IDENTITY:
        return shared_token(secret.which)
    return HeldSas(secret.value, secret.file) if secret.kind == SAS else None


@cache
def shared_token(which: str = "") -> SharedToken:
    """This process's token, of the identity that is configured or named."""
    from azcp_runtime.azure.bearer import SharedToken

    return SharedToken(lambda: make_source(find_identity(which, os.environ), os.environ))


def hidden(secret: Secret) -> Secret:
    """The secret, which from now on is cut out of all that is printed."""
    hide(secret.value)
    if secret.kind == SAS:
        hide(secret.value.partition("sig=")[2].partition("&")[0])
    return secret


def asker_of(location: BlobLocation, secret: Secret) -> Asker:
    """Who asks, for the messages of what is refused."""
    if secret.kind != SAS:
        return Asker(secret.kind, location.account_url)
    sas = parse_sas(secret.value)
    by_policy = bool(sas.policy) and sas.expires is None
    return Asker(SAS, location.account_url, sas.expires, by_policy=by_policy)


def _missing(problem: str) -> Secret:
    raise UsageError(problem)


def _sas(
    location: BlobLocation, sas_file: Path | None, env: Mapping[str, str], connection: Mapping[str, str]
) -> Secret | None:
    """Where a SAS is found first: --sas-file, the URL, a file that the environment names, the environment."""
    named = env.get(ENV_SAS + ENV_FILE_SUFFIX, "")
    if sas_file is None and not location.sas and named:
        sas_file = Path(named)
    if sas_file is not None:
        return hidden(Secret(SAS, read_sas(sas_file), str(sas_file), sas_file))
    for text, source in (
        (location.sas, "the URL"),
        (env.get(ENV_SAS, ""), ENV_SAS),
        (connection.get("sharedaccesssignature", ""), ENV_CONNECTION_STRING),
    ):
        if sas := checked_sas(text, source):
            return hidden(Secret(SAS, sas, source))
    return None


def _key(env: Mapping[str, str], connection: Mapping[str, str]) -> Secret | None:
    value, source = _setting(env, ENV_ACCOUNT_KEY)
    if not value:
        value, source = connection.get("accountkey", ""), ENV_CONNECTION_STRING
    if not value:
        return None
    try:
        base64.b64decode(value, validate=True)
    except ValueError:  # binascii.Error is one; so is what a non-ASCII character gives
        raise UsageError(f"the account key in {source} is not base64") from None
    return hidden(Secret(KEY, value, source))


def _connection(account: str, env: Mapping[str, str]) -> Mapping[str, str]:
    """The fields of the connection string by their names in lower case."""
    text, source = _setting(env, ENV_CONNECTION_STRING)
    pairs = [part.partition("=") for part in text.split(";") if part.strip()]
    if any(not equals for _, equals, _ in pairs):
        raise UsageError(f"{source} is no connection string", cause="it consists of NAME=VALUE; …")
    fields = {name.strip().lower(): value.strip() for name, _, value in pairs}
    named = fields.get("accountname", account)
    if named != account:
        raise UsageError(f"{source} is for another account than SOURCE's, {account}")
    return fields


def _setting(env: Mapping[str, str], name: str) -> tuple[str, str]:
    """A variable's value, or that of the file which its sibling names, and where it was found."""
    value = env.get(name, "").strip()
    file = env.get(name + ENV_FILE_SUFFIX, "").strip()
    if value or not file:
        return value, name
    try:
        return Path(file).read_text(encoding="utf-8").strip(), file
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {file} of {name}{ENV_FILE_SUFFIX}: {type(error).__name__}") from None


def environment() -> Mapping[str, str]:
    """The process environment; a seam for tests."""
    return os.environ
