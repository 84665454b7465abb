"""AuthorizationFailure: an account's network rules, and of an emulator all that it refuses."""

from __future__ import annotations

import ipaddress
import socket
from typing import Final
from urllib.parse import urlsplit

_BY_EMULATOR: Final = {
    "sas": "the signature: check the SAS, its permissions and its end",
    "key": "the signature: check the key",
    "identity": "the token: check the identity",
    "anonymous": "a request without credential: give a SAS or a key",
}


def remedy_of_network(kind: str, account_url: str) -> str:
    """What to do after an AuthorizationFailure.

    Args:
        kind: of the credential: sas, key, identity or anonymous.
        account_url: whom it asked.
    """
    host = urlsplit(account_url).hostname or ""
    if _is_loopback(host):
        # Emulators have this code for all that they refuse, and no network rules.
        return f"the emulator refuses {_BY_EMULATOR.get(kind, 'the credential: check it')}"
    told = "the network rules of the account or the scope of the SAS forbid it"
    if kind != "sas":
        told = "the network rules of the account forbid it"
    if address := _address(host):
        seen = f"{host}," if host == address else f"{host} is {address} here,"
        if ipaddress.ip_address(address).is_private:
            return f"{told}; {seen} a private address: check the endpoint and the firewall"
        return (
            f"{told}; {seen} a public address: admit this network in its firewall, "
            "or use a private endpoint and its DNS zone"
        )
    return f"{told}; check its firewall and private endpoint"


def _is_loopback(host: str) -> bool:
    """By the name that was given: an account's own name may lead to a tunnel on this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _address(host: str) -> str:
    try:
        return str(socket.getaddrinfo(host, 443, type=socket.SOCK_STREAM)[0][4][0]).partition("%")[0]
    except OSError:
        return ""
