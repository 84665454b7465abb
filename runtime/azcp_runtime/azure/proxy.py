"""The proxy that the environment names for an endpoint: HTTPS_PROXY, HTTP_PROXY, NO_PROXY."""

from __future__ import annotations

import base64
import urllib.request
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote_to_bytes, urlsplit

from azcp_runtime.contract import DownloadError

_PORT: Final = 80
"""Of a proxy's URL without one, as in any other http URL and as requests has it for the listing."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """Where to ask for a tunnel, and the headers to ask with."""

    host: str
    port: int
    headers: dict[str, str] = field(default_factory=dict, repr=False)


def proxy_for(scheme: str, host: str) -> Proxy | None:
    """The proxy for an endpoint, or None.

    Args:
        scheme: the endpoint's, http or https.
        host: the endpoint's, without port.

    Raises:
        DownloadError: the proxy's URL is malformed or its scheme is not http.
    """
    if urllib.request.proxy_bypass(host):
        return None
    text = urllib.request.getproxies().get(scheme)
    return _parsed(text, f"{scheme}_proxy") if text else None


def _parsed(text: str, variable: str) -> Proxy:
    try:
        url = urlsplit(text if "://" in text else f"http://{text}")
        name, port = url.hostname, url.port or _PORT
    except ValueError:
        name, port = None, 0
    if not name or url.scheme != "http":
        # The URL may hold a password: it is not repeated.
        raise DownloadError(f"{variable} names no http proxy", remedy="write http://HOST:PORT")
    return Proxy(name, port, _authorization(url.username, url.password))


def _authorization(user: str | None, password: str | None) -> dict[str, str]:
    if user is None:
        return {}
    pair = unquote_to_bytes(user) + b":" + unquote_to_bytes(password or "")
    return {"Proxy-Authorization": f"Basic {base64.b64encode(pair).decode('ascii')}"}
