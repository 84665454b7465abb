"""Waiting for nodes has a deadline, is done for all at once, and ends with who is missing and why."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from azcp_runtime.contract import PreflightError
from azcp_runtime.launch.network import LOOPBACK, NO_NAME, NOT_SSH, REFUSED, MissingError, Network, resolve
from azcp_runtime.launch.wait import Wish, wait_for
from azcp_runtime.ssh.client import RefusedError

LOCAL = "127.0.0.1"
MANY = 1024


async def at_home(host: str, port: int) -> str:  # noqa: ARG001 - a resolver's form
    """Every name is this machine."""
    return LOCAL


async def nowhere(host: str, port: int) -> str:  # noqa: ARG001
    raise MissingError(NO_NAME)


async def open_door(address: str) -> None:
    """Any key will do."""


def network(**parts: object) -> Network:
    """A network in which this machine plays all the others."""
    known = {"login": open_door, "resolve": at_home, "is_local": never, "is_loopback": never}
    return Network(**{**known, **parts})  # type: ignore[arg-type] # each part has its type


def never(address: str) -> bool:  # noqa: ARG001
    return False


def quiet(text: str) -> None:
    """Nobody listens."""


@contextmanager
def listener(greeting: bytes) -> Iterator[int]:
    """A port that greets everybody."""
    with socket.create_server((LOCAL, 0), backlog=MANY) as server:
        threading.Thread(target=_greet, args=(server, greeting), daemon=True).start()
        yield server.getsockname()[1]
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)


def _greet(server: socket.socket, greeting: bytes) -> None:
    with suppress(OSError):
        while True:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.sendall(greeting)


def closed_port() -> int:
    with socket.create_server((LOCAL, 0)) as server:
        return int(server.getsockname()[1])


def test_a_thousand_nodes_are_met_in_seconds() -> None:
    hosts = [f"node{number}" for number in range(MANY)]
    began = time.monotonic()
    with listener(b"SSH-2.0-x\r\n") as port:
        addresses = wait_for(Wish(hosts, port, 60), network(), quiet)
    assert list(addresses) == hosts
    assert time.monotonic() - began < 20


def test_a_node_that_comes_late_is_met() -> None:
    asked: list[str] = []

    async def late(host: str, port: int) -> str:
        asked.append(host)
        return await (at_home if len(asked) > 3 else nowhere)(host, port)

    with listener(b"SSH-2.0-x\r\n") as port:
        assert wait_for(Wish(["a"], port, 30), network(resolve=late), quiet) == {"a": LOCAL}


@pytest.mark.parametrize(
    ("greeting", "parts", "reason"),
    [
        (b"SSH-2.0-x\r\n", {"resolve": nowhere}, NO_NAME),
        (b"HTTP/1.1 400\r\n", {}, NOT_SSH),
        (b"SSH-2.0-x\r\n", {"is_loopback": lambda _address: True}, LOOPBACK),
    ],
)
def test_a_node_is_missing_for_a_reason(greeting: bytes, parts: dict[str, object], reason: str) -> None:
    with listener(greeting) as port, pytest.raises(PreflightError, match=reason) as caught:
        wait_for(Wish(["a", "b"], port, 0.5), network(**parts), quiet)
    assert "a: " in str(caught.value)
    assert "b: " in str(caught.value)


def test_a_closed_port_is_told_as_refused() -> None:
    with pytest.raises(PreflightError, match=f"1 of 1 nodes are missing after 0 s: a: {REFUSED}"):
        wait_for(Wish(["a"], closed_port(), 0.4), network(), quiet)


def test_a_node_that_refuses_the_key_ends_the_wait_at_once() -> None:
    async def refuse(address: str) -> None:
        raise RefusedError(f"{address} does not take the job's key")

    began = time.monotonic()
    with (
        listener(b"SSH-2.0-x\r\n") as port,
        pytest.raises(PreflightError, match="a: .* does not take the job's key"),
    ):
        wait_for(Wish(["a"], port, 60), network(login=refuse), quiet)
    assert time.monotonic() - began < 10


def test_this_node_itself_needs_no_ssh_server() -> None:
    parts = network(is_local=lambda _address: True)
    assert wait_for(Wish(["a"], closed_port(), 5), parts, quiet) == {"a": LOCAL}


def test_a_label_that_no_resolver_takes_does_not_resolve() -> None:
    with pytest.raises(MissingError, match=NO_NAME):
        asyncio.run(resolve("a" * 70, 22))


def test_a_resolver_that_hangs_does_not_outlast_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()

    def hang(*_args: object, **_options: object) -> list[object]:
        released.wait(60)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    began = time.monotonic()
    with pytest.raises(PreflightError, match="a: no answer"):
        wait_for(Wish(["a"], 1, 0.3), Network(open_door), quiet)
    assert time.monotonic() - began < 10
    released.set()


def test_a_name_is_resolved_again_until_its_address_is_that_of_the_node() -> None:
    addresses = iter(["10.255.255.1", LOCAL])
    asked: list[str] = []

    async def moving(host: str, port: int) -> str:  # noqa: ARG001
        asked.append(next(addresses, LOCAL))
        return asked[-1]

    async def at_the_right_one(address: str) -> None:
        assert address == LOCAL

    with listener(b"SSH-2.0-x\r\n") as port:
        parts = network(resolve=moving, login=at_the_right_one)
        assert wait_for(Wish(["a"], port, 60), parts, quiet) == {"a": LOCAL}
    assert asked[0] == "10.255.255.1"


def test_whoever_had_the_address_before_may_refuse_us_for_a_while() -> None:
    asked: list[str] = []

    async def refuse_twice(address: str) -> None:
        asked.append(address)
        if len(asked) < 3:
            raise RefusedError(f"{address} does not take the job's key")

    with listener(b"SSH-2.0-x\r\n") as port:
        assert wait_for(Wish(["a"], port, 60), network(login=refuse_twice), quiet) == {"a": LOCAL}


def test_a_node_that_has_gone_again_is_waited_for_again() -> None:
    asked: list[str] = []

    async def login(address: str) -> None:
        asked.append(address)

    with listener(b"SSH-2.0-x\r\n") as port:
        parts = network(login=login, is_met=lambda _address: len(asked) > 2)
        assert wait_for(Wish(["a"], port, 60), parts, quiet) == {"a": LOCAL}
    assert len(asked) == 3


def test_a_node_that_has_answered_long_ago_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from azcp_runtime.launch import wait

    monkeypatch.setattr(wait, "_FRESH_S", 0.0)
    asked: list[str] = []

    async def login(address: str) -> None:
        asked.append(address)

    with listener(b"SSH-2.0-x\r\n") as port:
        wait_for(Wish(["a", "b"], port, 60), network(login=login), quiet)
    assert len(asked) == 4


def test_this_node_is_not_taken_for_another_nor_another_for_it() -> None:
    async def by_name(host: str, port: int) -> str:  # noqa: ARG001
        return {"a": "10.0.0.1", "b": LOCAL}[host]

    parts = network(resolve=by_name, is_local=lambda address: address == LOCAL)
    with pytest.raises(PreflightError) as caught:
        wait_for(Wish(["a", "b"], closed_port(), 0.4, own="a"), parts, quiet)
    assert "a: resolves to 10.0.0.1, which is not this node's" in str(caught.value)
    assert "b: resolves to 127.0.0.1, which is this node's own" in str(caught.value)


def test_who_may_be_left_out_is_whatever_it_answers() -> None:
    async def refuse_b(address: str) -> None:
        if address == "127.0.0.3":
            raise RefusedError("it does not take the job's key")

    async def by_name(host: str, port: int) -> str:  # noqa: ARG001
        return {"a": LOCAL, "b": "127.0.0.3", "c": LOCAL}[host]

    said: list[str] = []
    with listener(b"SSH-2.0-x\r\n") as port:
        wish = Wish(["a", "b", "c"], port, 1.0, needs_all=False)
        parts = network(resolve=by_name, login=refuse_b)
        assert list(wait_for(wish, parts, said.append)) == ["a", "c"]
    assert said[-1].startswith("1 of 3 nodes are left out after 1 s: b (")
