"""Whether a node reaches the account: each way in which it does not is told apart."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from azcp_runtime.doctor.check import Check, Status
from azcp_runtime.preflight.reach import address_text, check_reach, clock_check, endpoint_of, trouble
from azcp_runtime.source.location import BlobLocation, parse_source

from tests.lab.fault_account import FaultAccount
from tests.lab.stored_blobs import StoredBlob
from tests.lab.tunnel_proxy import TunnelProxy

PATIENCE_S = 5.0
SHORT_S = 0.2
NOON = 1_700_000_000.0
BLOBS = {"a": StoredBlob(b"a")}


@pytest.fixture(autouse=True)
def _without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def located(url: str) -> BlobLocation:
    """The location of a Blob URL."""
    location = parse_source(url)
    assert isinstance(location, BlobLocation)
    return location


def looked(url: str, patience_s: float = PATIENCE_S) -> dict[str, Check]:
    """The checks by name."""
    return {check.name: check for check in check_reach(located(url), patience_s)}


def worst(checks: dict[str, Check]) -> Check:
    """The one that fails."""
    (failed,) = [check for check in checks.values() if check.status is Status.FAIL]
    return failed


@contextmanager
def listening() -> Iterator[int]:
    """A port that takes connections into its queue and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_an_account_that_answers_is_reached_even_where_it_refuses() -> None:
    with FaultAccount(BLOBS) as account:
        checks = looked(account.url())
    assert {name: check.status for name, check in checks.items()} == dict.fromkeys(
        ("account address", "account connection", "clock"), Status.OK
    )
    assert checks["account address"].found == "loopback: 127.0.0.1"


def test_a_trusted_certificate_is_accepted_and_another_one_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultAccount(BLOBS, tls=True) as account:
        failed = worst(looked(account.url()))
        assert failed.found.startswith("certificate refused: self-signed certificate")
        assert "SSL_CERT_FILE" in failed.remedy
        for name, value in account.trust.items():
            monkeypatch.setenv(name, value)
        assert looked(account.url())["account connection"].found == "TLS"


def test_a_name_that_nobody_knows_is_told_from_a_port_that_nobody_serves() -> None:
    failed = worst(looked("http://account.invalid/devstore/data"))
    assert failed.name == "account address"
    assert "DNS" in failed.remedy
    with listening() as port:
        pass
    failed = worst(looked(f"http://127.0.0.1:{port}/devstore/data"))
    assert failed.found == f"127.0.0.1:{port} refuses the connection"


def test_a_resolver_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_options: over.wait() and [])
    failed = worst(looked("http://account.invalid/devstore/data", SHORT_S))
    over.set()
    assert failed.found == "account.invalid: no answer within 0.2 s"
    assert "resolv.conf" in failed.remedy


def test_a_server_that_sends_its_answer_in_drops_is_not_waited_for() -> None:
    over = threading.Event()

    def drip(server: socket.socket) -> None:
        with server.accept()[0] as client, suppress(OSError):
            client.sendall(b"HTTP/1.1 200 OK\r\n")
            while not over.wait(SHORT_S / 4):
                client.sendall(b"x: y\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=drip, args=(server,))
        thread.start()
        failed = worst(looked(f"http://127.0.0.1:{server.getsockname()[1]}/devstore/data", SHORT_S))
        over.set()
        thread.join()
    assert failed.found.endswith("does not answer in time")


def test_a_server_that_says_nothing_is_not_waited_for_any_longer() -> None:
    with listening() as port:
        failed = worst(looked(f"http://127.0.0.1:{port}/devstore/data", SHORT_S))
    assert failed.found == f"127.0.0.1:{port} does not answer in time"


def test_the_way_through_a_proxy_is_taken_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultAccount(BLOBS) as account, TunnelProxy() as proxy:
        monkeypatch.setenv("http_proxy", f"http://user:hidden-word@127.0.0.1:{proxy.port}")
        checks = looked(account.url())
        assert [tunnel.target for tunnel in proxy.tunnels()] == [account.url().split("/")[2]]
    assert checks["account connection"].found == "plain HTTP through the proxy"
    assert checks["account address"].found.startswith("proxy 127.0.0.1, loopback")
    assert "hidden-word" not in repr(checks)


def test_a_proxy_that_is_gone_or_malformed_is_blamed_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    with listening() as port:
        pass
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
    assert (
        worst(looked("http://10.0.0.1/devstore/data")).found
        == f"proxy 127.0.0.1:{port} refuses the connection"
    )
    monkeypatch.setenv("http_proxy", "socks5://user:hidden-word@127.0.0.1")
    failed = worst(looked("http://10.0.0.1/devstore/data"))
    assert failed.found == "http_proxy names no http proxy"


def test_public_and_private_addresses_are_told_apart() -> None:
    endpoint = endpoint_of(located("https://some.blob.core.windows.net/data"))
    assert (endpoint.host, endpoint.port, endpoint.path) == ("some.blob.core.windows.net", 443, "/data")
    assert address_text(endpoint, ["20.60.1.1"]) == "public: 20.60.1.1"
    assert address_text(endpoint, ["10.1.0.4", "fe80::1%eth0"]) == "private: 10.1.0.4, fe80::1%eth0"
    assert address_text(endpoint, ["127.0.0.1", "::1"]) == "loopback: 127.0.0.1, ::1"
    assert address_text(endpoint, ["10.1.0.4", "20.60.1.1"]).startswith("private and public")


@pytest.mark.parametrize(
    ("ours", "status"),
    [
        (NOON + 60, Status.OK),
        (NOON - 61, Status.WARN),
        (NOON + 900, Status.WARN),
        (NOON - 901, Status.FAIL),
        (NOON + 86400, Status.FAIL),
    ],
)
def test_a_clock_is_judged_by_what_the_service_bears(ours: float, status: Status) -> None:
    check = clock_check(NOON, ours)
    assert check.status is status
    assert ("ahead of" if ours > NOON else "behind") in check.found or status is Status.OK


def test_an_answer_without_a_date_comes_from_something_else() -> None:
    assert clock_check(None, NOON).status is Status.WARN


def test_each_kind_of_trouble_has_its_own_words() -> None:
    endpoint = endpoint_of(located("https://some.blob.core.windows.net/data"))
    errors = (
        http.client.BadStatusLine("SSH-2.0"),
        TimeoutError(),
        ConnectionRefusedError(),
        OSError(113, "No route to host"),
    )
    texts = [trouble(error, endpoint)[0] for error in errors]
    assert len(set(texts)) == len(errors)
    assert texts[-1] == "some.blob.core.windows.net:443: No route to host"


def test_a_port_that_speaks_plain_http_is_no_certificate_of_anybody() -> None:
    with FaultAccount(BLOBS) as account:
        failed = worst(looked(account.url().replace("http://", "https://")))
    assert failed.found.startswith("TLS failed: ")
    assert failed.remedy == "does the port speak https?"
