"""Which identity asks for tokens: decided by what is configured, never by trying one after the other.

azure-identity's own chain takes the next credential when one fails, so a typing error in a client id
ends as another identity, or as none that anybody can name.
"""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from azcp_runtime.contract import UsageError

if TYPE_CHECKING:
    from azcp_runtime.azure.bearer import TokenSource

WORKLOAD: Final = "workload"
MANAGED: Final = "managed"
CLI: Final = "cli"
PRINCIPAL: Final = "principal"
IDENTITIES: Final = (WORKLOAD, MANAGED, CLI)
"""What --auth can name."""

_TENANT: Final = "AZURE_TENANT_ID"
_CLIENT: Final = "AZURE_CLIENT_ID"
_TOKEN_FILE: Final = "AZURE_FEDERATED_TOKEN_FILE"  # noqa: S105 - a variable's name
_CLIENT_SECRET: Final = "AZURE_CLIENT_SECRET"  # noqa: S105 - a variable's name
_CERTIFICATE: Final = "AZURE_CLIENT_CERTIFICATE_PATH"
_IMDS_HOST: Final = "AZURE_POD_IDENTITY_AUTHORITY_HOST"
_ENDPOINTS: Final = ("IDENTITY_ENDPOINT", "MSI_ENDPOINT")
_IMDS: Final = "http://169.254.169.254"
_PROBES_S: Final = (1.0, 3.0)
"""How long the metadata service may take to accept a connection, where az is there too."""

_CONNECT_S: Final = 10.0
_READ_S: Final = 15.0
_SILENT_READS: Final = 1
"""How often an endpoint that was reached and said nothing is asked again. The SDK alone waits four times for
300 s, in which the other ranks give this one up."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks for tokens: the kind, where it was found, and its client id and tenant where they are set."""

    kind: str
    source: str
    client: str = ""
    tenant: str = ""

    def __str__(self) -> str:
        """For messages."""
        names = {WORKLOAD: "workload identity", MANAGED: "managed identity", CLI: "az login"}
        words = [names.get(self.kind, "service principal")]
        words += [f"client {self.client}"] if self.client else []
        words += [f"tenant {self.tenant}"] if self.tenant else []
        return f"{', '.join(words)} (from {self.source})"


def choose_identity(
    wanted: str, env: Mapping[str, str], *, has_az: bool, has_imds: Callable[[], bool]
) -> Identity:
    """The identity that the environment configures.

    Args:
        wanted: workload, managed or cli; empty for the first that is configured.
        env: the environment.
        has_az: whether the az command is there.
        has_imds: asks whether a metadata service listens; only where az could be meant instead.

    Raises:
        UsageError: what was asked for is not there, or only a part of it is.
    """
    client, tenant = env.get(_CLIENT, "").strip(), env.get(_TENANT, "").strip()
    if wanted == WORKLOAD or (not wanted and env.get(_TOKEN_FILE)):
        _require(env, "workload identity", (_TOKEN_FILE, _CLIENT, _TENANT))
        return Identity(WORKLOAD, _TOKEN_FILE, client, tenant)
    if not wanted and (env.get(_CLIENT_SECRET) or env.get(_CERTIFICATE)):
        _require(env, "a service principal", (_CLIENT, _TENANT))
        source = _CLIENT_SECRET if env.get(_CLIENT_SECRET) else _CERTIFICATE
        return Identity(PRINCIPAL, source, client, tenant)
    if wanted == CLI:
        return _az(has_az=has_az)
    for name in _ENDPOINTS:
        if env.get(name):
            return Identity(MANAGED, name, client)
    if wanted == MANAGED or client or env.get(_IMDS_HOST) or not has_az or has_imds():
        return Identity(MANAGED, "the metadata service", client)
    return _az(has_az=has_az)


def find_identity(wanted: str, env: Mapping[str, str]) -> Identity:
    """choose_identity on this machine; raises UsageError."""
    host = env.get(_IMDS_HOST) or _IMDS
    return choose_identity(
        wanted,
        env,
        has_az=shutil.which("az", path=env.get("PATH")) is not None,
        has_imds=lambda: _listens(host),
    )


def make_source(identity: Identity, env: Mapping[str, str]) -> TokenSource:
    """The credential of azure-identity for it."""
    import azure.identity as sdk

    if identity.kind == WORKLOAD:
        file = Path(env[_TOKEN_FILE])
        # WorkloadIdentityCredential keeps the file's text for minutes, in which the kubelet may rotate it.
        return sdk.ClientAssertionCredential(
            identity.tenant, identity.client, lambda: _assertion(file), **_authority(env), **_limits()
        )
    if identity.kind == PRINCIPAL:
        return sdk.EnvironmentCredential(**_authority(env), **_limits())
    if identity.kind == CLI:
        return sdk.AzureCliCredential()
    from azure.core.pipeline.transport import RequestsTransport

    # A proxy would answer in the name of its own machine, or not at all.
    transport = RequestsTransport(use_env_settings=False, **_limits())
    return sdk.ManagedIdentityCredential(
        client_id=identity.client or None, transport=transport, retry_read=_SILENT_READS
    )


def _limits() -> dict[str, Any]:
    """How long azure-identity waits for an endpoint, and how often."""
    return {"connection_timeout": _CONNECT_S, "read_timeout": _READ_S, "retry_read": _SILENT_READS}


def _authority(env: Mapping[str, str]) -> dict[str, Any]:
    """Where tokens come from in a cloud of one's own, which the public one does not know."""
    host = env.get("AZURE_AUTHORITY_HOST", "").strip()
    return {"authority": host} if host else {}


def _assertion(file: Path) -> str:
    from azure.core.exceptions import ClientAuthenticationError

    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ClientAuthenticationError(f"cannot read {file}: {type(error).__name__}") from None


def _require(env: Mapping[str, str], what: str, names: tuple[str, ...]) -> None:
    missing = [name for name in names if not env.get(name, "").strip()]
    if missing:
        raise UsageError(
            f"{what} needs {', '.join(missing)}",
            remedy="on AKS: the pod's label azure.workload.identity/use and its service account's annotation"
            if what.startswith("workload")
            else "set them, or unset what names the principal",
        )


def _az(*, has_az: bool) -> Identity:
    if not has_az:
        raise UsageError("--auth cli needs the az command", remedy="install it and run az login")
    return Identity(CLI, "az")


def _listens(address: str) -> bool:
    url = urlsplit(address)
    for seconds in _PROBES_S:
        with suppress(OSError), socket.create_connection((url.hostname or "", url.port or 80), seconds):
            return True
    return False
