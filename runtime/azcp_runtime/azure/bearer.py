"""One bearer token for all threads of a rank: asked for once a life, and once more after a refusal."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from azure.core.credentials import AccessToken, AccessTokenInfo, TokenRequestOptions
from azure.core.exceptions import AzureError, ClientAuthenticationError
from azure.core.pipeline import PipelineRequest, PipelineResponse
from azure.core.pipeline.policies import HTTPPolicy
from azure.core.rest import HttpRequest

from azcp_runtime.azure.holder import Holder
from azcp_runtime.contract import DownloadError
from azcp_runtime.scrub import hide

STORAGE_SCOPE: Final = "https://storage.azure.com/.default"
"""What tokens are asked for, whatever a challenge names: the same in all clouds."""

_EARLY_S: Final = 300.0
_PAUSE_S: Final = 10.0
_BEYOND_S: Final = 60.0
"""How long a new token is used that has ended by this clock: one of the two clocks is wrong, and the account
will say whether the token is."""

_UNAUTHORIZED: Final = 401


class TokenSource(Protocol):
    """What is used of azure-identity's credentials."""

    def get_token_info(self, *scopes: str, options: TokenRequestOptions | None = None) -> AccessTokenInfo:
        """A token; raises AzureError."""

    def close(self) -> None:
        """Close its connections."""


@dataclass(frozen=True, slots=True)
class _Held:
    info: AccessTokenInfo
    renew_at: float
    vain_until: float = 0.0

    def is_another(self, refused: str, now: float) -> bool:
        """Whether it can stand in for the refused one."""
        return self.info.token != refused and now < self.info.expires_on


class SharedToken:
    """A credential of azure-core that many threads and several clients share.

    azure-core's own policy has no lock: 300 fetchers would send 300 requests to the metadata service,
    which throttles at 20 a second, and one thread's refusal would take the token from under another.

    Args:
        make: makes the credential that is asked; made anew after a refusal, for its cache holds what
            was refused.
    """

    def __init__(self, make: Callable[[], TokenSource]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._source: TokenSource | None = None
        self._held: _Held | None = None
        self._failed: tuple[float, str] | None = None
        self._options: TokenRequestOptions = {}
        self._given = threading.local()

    def get_token(
        self, *scopes: str, claims: str | None = None, tenant_id: str | None = None, **_options: object
    ) -> AccessToken:
        """As get_token_info, in the older form of azure-core's protocol."""
        options: TokenRequestOptions = {}
        if claims:
            options["claims"] = claims
        if tenant_id:
            options["tenant_id"] = tenant_id
        info = self.get_token_info(*scopes, options=options)
        return AccessToken(info.token, info.expires_on)

    def get_token_info(self, *_scopes: str, options: TokenRequestOptions | None = None) -> AccessTokenInfo:
        """The token for Storage; claims or a tenant in the options mean that this thread's was refused.

        Raises:
            AzureError: there is none, or it cannot be had now.
        """
        given: str = getattr(self._given, "token", "")
        challenged = bool(options and (options.get("claims") or options.get("tenant_id")))
        info = self.replaced(given, options) if challenged and given else self._current()
        self._given.token = info.token
        return info

    def replaced(self, refused: str, options: TokenRequestOptions | None = None) -> AccessTokenInfo:
        """Another token than the refused one, which another thread may have fetched already.

        Raises:
            AzureError: there is none, or it cannot be had now.
        """
        with self._lock:
            held, now = self._held, time.time()
            if held and (
                now < held.vain_until or (held.info.token != refused and now < held.info.expires_on)
            ):
                return held.info
            if self._source:
                self._source.close()
            self._source = self._held = None
            info = self._fetch(options or {})
            if info.token == refused:
                # The metadata service has a cache too: not every thread needs to find that out.
                self._held = _Held(info, _renew_at(info, now), vain_until=now + _PAUSE_S)
            return info

    def current(self) -> str:
        """The token; raises AzureError."""
        return self.get_token_info().token

    def another(self, refused: str, tenant: str = "") -> str:
        """Another token than the refused one, or that again where there is no other; raises AzureError."""
        return self.replaced(refused, {"tenant_id": tenant} if tenant else {}).token

    def left_s(self) -> float:
        """For how many seconds the token is valid."""
        held = self._held
        return held.info.expires_on - time.time() if held else 0.0

    def renew_in_s(self) -> float:
        """In how many seconds it is time for the next one."""
        held = self._held
        return held.renew_at - time.time() if held else 0.0

    def _current(self) -> AccessTokenInfo:
        held, now = self._held, time.time()
        if held and now < held.renew_at:
            return held.info
        # While the old token lives, nobody waits for the one that fetches its successor.
        alive = held is not None and now < held.info.expires_on
        if not self._lock.acquire(blocking=not alive):
            return held.info if held else self._current()
        try:
            if self._held and time.time() < self._held.renew_at:
                return self._held.info
            return self._renewed()
        finally:
            self._lock.release()

    def _renewed(self) -> AccessTokenInfo:
        try:
            return self._fetch(self._options)
        except AzureError:
            now = time.time()
            if self._held is None or now >= self._held.info.expires_on:
                raise
            self._held = _Held(self._held.info, min(now + _PAUSE_S, self._held.info.expires_on))
            return self._held.info

    def _fetch(self, options: TokenRequestOptions) -> AccessTokenInfo:
        if self._failed and time.time() < self._failed[0]:
            raise ClientAuthenticationError(self._failed[1])
        if self._source is None:
            self._source = self._make()
        try:
            info = self._source.get_token_info(STORAGE_SCOPE, options=options)
        except ClientAuthenticationError as error:
            # Those who waited meanwhile must not each ask again: a refusal can take many seconds.
            self._failed = (time.time() + _PAUSE_S, str(error))
            raise
        if tenant := options.get("tenant_id"):
            self._options = {"tenant_id": tenant}
        self._failed = None
        hide(info.token)
        if info.expires_on <= time.time():
            info = AccessTokenInfo(info.token, int(time.time() + _BEYOND_S))
        self._held = _Held(info, _renew_at(info, time.time()))
        return info


class BearerPolicy(HTTPPolicy[HttpRequest, Any]):
    """Puts the held token into each request; after a 401 the request goes out once more."""

    def __init__(self, holder: Holder) -> None:
        super().__init__()
        self._holder = holder

    def send(self, request: PipelineRequest[HttpRequest]) -> PipelineResponse[HttpRequest, Any]:
        """The next policy's response."""
        if not request.http_request.url.lower().startswith("https:"):
            raise DownloadError("a token is sent over https only")
        token = self._holder.current()
        response = self._sent(request, token)
        if response.http_response.status_code != _UNAUTHORIZED:
            return response
        tenant = challenged_tenant(response.http_response.headers.get("WWW-Authenticate", ""))
        another = self._holder.another(token, tenant)
        return response if another == token else self._sent(request, another)

    def _sent(self, request: PipelineRequest[HttpRequest], token: str) -> PipelineResponse[HttpRequest, Any]:
        request.http_request.headers["Authorization"] = f"Bearer {token}"
        return self.next.send(request)


def challenged_tenant(challenge: str) -> str:
    """The tenant that a 401 of the Blob service names in its WWW-Authenticate, or an empty string."""
    for part in challenge.replace(",", " ").split():
        name, _, value = part.partition("=")
        if name == "authorization_uri":
            return urlsplit(value.strip('"')).path.strip("/").partition("/")[0]
    return ""


def _renew_at(info: AccessTokenInfo, now: float) -> float:
    """Five minutes before the end or at half the life, whichever is later; sooner where it says so."""
    at = info.expires_on - min(_EARLY_S, (info.expires_on - now) / 2)
    return min(at, info.refresh_on) if info.refresh_on else at
