"""Connections to the account: kept after errors, through proxies, and honest about what was reached."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final

import pytest
from azcp_runtime.azure.body import BodyReader
from azcp_runtime.azure.credential import Secret
from azcp_runtime.azure.proxy import Proxy, proxy_for
from azcp_runtime.azure.retry import Retries, RetryLimits
from azcp_runtime.azure.wire import Wire, WireError
from azcp_runtime.contract import DownloadError
from azcp_runtime.source.listing import Entry
from azcp_runtime.source.location import BlobLocation, parse_source

from tests.lab import faults
from tests.lab.answers import Answer
from tests.lab.dataset import plain_data_set
from tests.lab.fault_account import FaultAccount
from tests.lab.faults import Change, Fault
from tests.lab.stored_blobs import stored
from tests.lab.tunnel_proxy import Tunnel, TunnelProxy

SIZE: Final = 5000
BASIC: Final = "Basic dXNlcjpwYTpzcw=="


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[TunnelProxy]:
    """A proxy that the environment names, for everything and with a password."""
    for name in ("no_proxy", "NO_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    with TunnelProxy() as running:
        for name in ("HTTP_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, f"http://user:pa%3Ass@127.0.0.1:{running.port}")
        yield running


@contextmanager
def account_and_reader(
    monkeypatch: pytest.MonkeyPatch, *changes: Change, tls: bool = True
) -> Iterator[tuple[FaultAccount, BodyReader, Entry]]:
    data_set = stored(plain_data_set(SIZE))
    with FaultAccount(data_set, [Fault(change) for change in changes], tls=tls) as account:
        for name, value in account.trust.items():
            monkeypatch.setenv(name, value)
        location = parse_source(account.url())
        assert isinstance(location, BlobLocation)
        limits, stop = RetryLimits(9, 60.0), threading.Event()
        with closing(BodyReader(location, Secret("anonymous"), limits, Retries(), stop)) as reader:
            name, blob = next(iter(data_set.items()))
            yield account, reader, Entry(name.encode(), blob.size, f'"{blob.etag}"')


def read(reader: BodyReader, entry: Entry) -> bytes:
    into = memoryview(bytearray(entry.size))
    reader.read(entry, 0, into)
    return bytes(into)


def chunked_busy() -> Change:
    busy, chunked = faults.busy("0"), faults.chunked()
    return lambda answer: chunked(busy(answer))


@pytest.mark.parametrize("tls", [True, False])
def test_a_connection_is_kept_when_the_account_is_busy(
    monkeypatch: pytest.MonkeyPatch, proxy: TunnelProxy, *, tls: bool
) -> None:
    changes = [faults.busy("0"), chunked_busy(), faults.too_many_requests("0")]
    with account_and_reader(monkeypatch, *changes, tls=tls) as (account, reader, entry):
        assert len(read(reader, entry)) == SIZE
        assert [exchange.status for exchange in account.reads()] == [503, 503, 429, 206]
    assert len(proxy.tunnels()) == 1


@pytest.mark.parametrize("cut", [0, 20])
def test_a_connection_whose_error_was_cut_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, proxy: TunnelProxy, cut: int
) -> None:
    def change(answer: Answer) -> Answer:
        return faults.close_mid_body(cut)(faults.busy("0")(answer))

    with account_and_reader(monkeypatch, change) as (_, reader, entry):
        assert len(read(reader, entry)) == SIZE
    assert len(proxy.tunnels()) == 2


@pytest.mark.parametrize("tls", [True, False])
def test_a_proxys_user_and_password_are_sent_to_it_alone(
    monkeypatch: pytest.MonkeyPatch, proxy: TunnelProxy, *, tls: bool
) -> None:
    with account_and_reader(monkeypatch, tls=tls) as (account, reader, entry):
        read(reader, entry)
        authority = account.url().split("/")[2]
        assert "proxy-authorization" not in account.reads()[0].request.headers
    assert proxy.tunnels() == [Tunnel(authority, BASIC)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://proxy", Proxy("proxy", 80)),
        ("proxy:8080", Proxy("proxy", 8080)),
        ("http://user@proxy:1/", Proxy("proxy", 1, {"Proxy-Authorization": "Basic dXNlcjo="})),
        ("http://user:pa%3Ass@[::1]:1", Proxy("::1", 1, {"Proxy-Authorization": BASIC})),
    ],
)
def test_a_proxy_is_read_as_other_clients_do(
    monkeypatch: pytest.MonkeyPatch, text: str, expected: Proxy
) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("https_proxy", text)
    assert proxy_for("https", "a.blob.core.windows.net") == expected
    assert "dXNlcjp" not in repr(expected)
    monkeypatch.setenv("no_proxy", "windows.net")
    assert proxy_for("https", "a.blob.core.windows.net") is None


@pytest.mark.parametrize(
    "text", ["https://u:secret@proxy", "socks5://u:secret@proxy", "http://u:secret@proxy:99999", "http://"]
)
def test_a_proxy_that_cannot_be_used_is_refused_without_its_password(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("https_proxy", text)
    with pytest.raises(DownloadError, match="https_proxy names no http proxy") as caught:
        proxy_for("https", "host")
    assert "secret" not in str(caught.value)


def test_a_server_that_answered_nothing_was_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        wire = Wire(f"http://127.0.0.1:{server.getsockname()[1]}", None)

        def drop() -> None:
            connection, _ = server.accept()
            connection.recv(1 << 16)
            connection.close()

        dropping = threading.Thread(target=drop)
        dropping.start()
        with pytest.raises(WireError) as caught:
            wire.get("/", {})
        dropping.join()
    assert caught.value.reached


def test_a_server_that_does_not_listen_was_not_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(WireError) as caught:
        Wire(f"http://127.0.0.1:{port}", None).get("/", {})
    assert not caught.value.reached
