"""Whether a node reaches the account, which way, and how far their clocks are apart."""

from __future__ import annotations

import http.client
import ipaddress
import os
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit

from azcp_runtime.azure.proxy import Proxy, proxy_for
from azcp_runtime.azure.refusals import clock_of
from azcp_runtime.azure.wire import tls_context
from azcp_runtime.contract import AzcpError
from azcp_runtime.doctor.check import Check, fail, few, ok, warn
from azcp_runtime.preflight.within import NoAnswerError, within
from azcp_runtime.source.location import BlobLocation
from azcp_runtime.source.names import shown

_ADDRESS: Final = "account address"
_CONNECTION: Final = "account connection"
_CLOCK: Final = "clock"
_PATIENCE_S: Final = 10.0
_STEPS: Final = 4
"""Of a connection: to a first and a second address, TLS, and the answer."""

_NOTICED_S: Final = 60.0
_REFUSED_S: Final = 900.0
"""What the service takes off a signed request's date, and what a SAS made now may be early: 15 minutes."""

_SYNCHRONIZE: Final = "synchronize the clock of the node: chrony or systemd-timesyncd"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Whom to ask for an account, and through which proxy.

    Attributes:
        host: the account's.
        port: its port.
        is_tls: over https.
        path: what to ask for; anything that it answers will do.
        proxy: None for the direct way.
    """

    host: str
    port: int
    is_tls: bool
    path: str
    proxy: Proxy | None

    @property
    def next_hop(self) -> tuple[str, int]:
        """Where the connection goes."""
        return (self.proxy.host, self.proxy.port) if self.proxy else (self.host, self.port)


def check_reach(location: BlobLocation, patience_s: float = _PATIENCE_S) -> Iterator[Check]:
    """Name, connection and clock of the account; what cannot be tried after a failure is left out.

    Args:
        location: the source.
        patience_s: how long each step may take.
    """
    try:
        endpoint = endpoint_of(location)
    except AzcpError as error:  # the proxy's setting
        yield fail(_ADDRESS, error.what, error.remedy)
        return
    host, port = endpoint.next_hop
    try:
        found = within(patience_s, lambda: _addresses(host, port))
    except NoAnswerError as error:
        yield fail(_ADDRESS, f"{_shown(host)}: {error}", "check the node's DNS servers in /etc/resolv.conf")
        return
    except (socket.gaierror, UnicodeError) as error:
        reason = error.strerror if isinstance(error, socket.gaierror) else "no name of a host"
        yield fail(
            _ADDRESS,
            f"{_shown(host)}: {reason}",
            "check the account's name, the node's DNS, and for a private endpoint its private DNS zone",
        )
        return
    yield ok(_ADDRESS, address_text(endpoint, found))
    yield from _asked(endpoint, patience_s)


def endpoint_of(location: BlobLocation) -> Endpoint:
    """The endpoint of a source.

    Raises:
        DownloadError: the environment names a proxy that is none.
    """
    url = urlsplit(location.account_url)
    host, is_tls = url.hostname or "", url.scheme == "https"
    path = quote(f"{url.path}/{location.container}")
    return Endpoint(host, url.port or (443 if is_tls else 80), is_tls, path, proxy_for(url.scheme, host))


def address_text(endpoint: Endpoint, addresses: list[str]) -> str:
    """Which way the name leads: a private endpoint, the account's public address, or this machine itself."""
    kinds = sorted({_kind(each) for each in addresses})
    text = f"{' and '.join(kinds)}: {few(sorted(set(addresses)), 4)}"
    return f"proxy {_shown(endpoint.next_hop[0])}, {text}" if endpoint.proxy else text


def _kind(address: str) -> str:
    found = ipaddress.ip_address(address.partition("%")[0])
    if found.is_loopback:
        return "loopback"
    return "private" if found.is_private else "public"


def clock_check(theirs: float | None, ours: float) -> Check:
    """How far this clock is from the account's.

    Args:
        theirs: the Date that it answered with.
        ours: this clock's time between question and answer.
    """
    if theirs is None:
        return warn(_CLOCK, "the account's answer has no date", "something in between answers for it")
    skew = ours - theirs
    found = f"{abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} the account's"
    if abs(skew) > _REFUSED_S:
        return fail(_CLOCK, f"{found}: signed requests are refused from 15 minutes on", _SYNCHRONIZE)
    if abs(skew) > _NOTICED_S:
        return warn(_CLOCK, f"{found}: a SAS may not be valid yet, or not any more", _SYNCHRONIZE)
    return ok(_CLOCK, "within a minute of the account's")


def trouble(error: Exception, endpoint: Endpoint) -> tuple[str, str]:
    """What went wrong with a connection, and what to do."""
    host, port = endpoint.next_hop
    where = f"{'proxy ' if endpoint.proxy else ''}{_shown(host)}:{port}"
    if isinstance(error, ssl.SSLError):
        return _tls_trouble(error)
    if isinstance(error, TimeoutError):
        return f"{where} does not answer in time", (
            "a firewall drops it: open the way to the account, name the proxy in https_proxy, "
            "or use a private endpoint"
        )
    if isinstance(error, ConnectionRefusedError):
        return f"{where} refuses the connection", "check the port, and that the service runs"
    if isinstance(error, http.client.HTTPException):
        return f"{where} answers with nothing that is HTTP", "check the port and the scheme"
    if endpoint.proxy and str(error).startswith("Tunnel connection failed"):
        return f"{where}: {_shown(str(error))}", "check the proxy's rules, and its user and password"
    reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else type(error).__name__
    return f"{where}: {reason}", "check the node's route to the account"


def _tls_trouble(error: ssl.SSLError) -> tuple[str, str]:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate refused: {error.verify_message}", (
            "something in between speaks for the account, or its authority is missing: SSL_CERT_FILE"
        )
    return f"TLS failed: {error.reason or 'no reason given'}", "does the port speak https?"


def _asked(endpoint: Endpoint, patience_s: float) -> Iterator[Check]:
    began = time.time()
    try:
        # Each step has its own time, but a server may send its answer byte by byte.
        date = within(_STEPS * patience_s, lambda: _answer(endpoint, patience_s))
    except NoAnswerError:
        yield fail(_CONNECTION, *trouble(TimeoutError(), endpoint))
        return
    except (OSError, http.client.HTTPException) as error:
        yield fail(_CONNECTION, *trouble(error, endpoint))
        return
    way = "TLS" if endpoint.is_tls else "plain HTTP"
    yield ok(_CONNECTION, f"{way}{' through the proxy' if endpoint.proxy else ''}")
    yield clock_check(date, (began + time.time()) / 2)


def _addresses(host: str, port: int) -> list[str]:
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def _answer(endpoint: Endpoint, patience_s: float) -> float | None:
    """The date of an answer; without a credential, since even a refusal has a date."""
    connection = _connection(endpoint, patience_s)
    try:
        if endpoint.proxy:
            connection.set_tunnel(endpoint.host, endpoint.port, endpoint.proxy.headers)
        connection.request("HEAD", endpoint.path)
        return clock_of(dict(connection.getresponse().getheaders()))
    finally:
        connection.close()


def _connection(endpoint: Endpoint, patience_s: float) -> http.client.HTTPConnection:
    host, port = endpoint.next_hop
    if endpoint.is_tls:
        return http.client.HTTPSConnection(host, port, timeout=patience_s, context=tls_context())
    return http.client.HTTPConnection(host, port, timeout=patience_s)


def _shown(text: str) -> str:
    return shown(os.fsencode(text))
