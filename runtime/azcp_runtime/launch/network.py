"""How a node is seen from here: its address, whether it is this one, whether an ssh server answers."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

NO_NAME: Final = "does not resolve"
REFUSED: Final = "refused"
SILENT: Final = "no answer"
NOT_SSH: Final = "no ssh server on that port"
LOOPBACK: Final = "resolves to this machine's loopback, which no other node can reach"
_BANNER: Final = b"SSH-"
_TRY_S: Final = 5.0

Login = Callable[[str], Awaitable[None]]
"""Prove to one address that we hold the job's key; raises what is wrong."""


class MissingError(Exception):
    """A node is not there yet, and may come."""


async def resolve(host: str, port: int) -> str:
    """An address of the host, one of IPv4 where it has one: Open MPI's own channel speaks no other."""
    try:
        found = await _look_up(host, port)
    except (OSError, UnicodeError):  # the latter where a label has more than 63 characters
        raise MissingError(NO_NAME) from None
    addresses = [(str(entry[4][0]), entry[0]) for entry in found]
    return min(addresses, key=lambda known: (is_loopback(known[0]), known[1] != socket.AF_INET))[0]


async def _look_up(host: str, port: int) -> list[tuple[Any, ...]]:
    """Ask in a thread that nobody waits for: a resolver may take longer than the deadline allows."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[tuple[Any, ...]]] = loop.create_future()

    def settle(found: list[tuple[Any, ...]], error: Exception | None) -> None:
        if answer.done():  # given up
            return
        if error:
            answer.set_exception(error)
        else:
            answer.set_result(found)

    def ask() -> None:
        found, failure = [], None
        try:
            found = list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: the deadline was faster
            loop.call_soon_threadsafe(settle, found, failure)

    threading.Thread(target=ask, daemon=True).start()
    return await answer


def is_loopback(address: str) -> bool:
    """Whether the address means this machine to whoever uses it."""
    return address.startswith("127.") or address == "::1"


def is_local(address: str) -> bool:
    """Whether the address is this node's own; mpirun needs no remote shell to itself."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address.partition("%")[0], 0))
        except OSError:
            return False
    return True


@dataclass(frozen=True, slots=True)
class Network:
    """How the nodes are seen from here.

    Args:
        login: proves to an address that we hold the job's key.
        resolve: an address of a host.
        is_local: whether an address is this node's own; mpirun needs no remote shell to itself.
        is_loopback: whether an address means this machine to whoever uses it.
        is_met: whether who has let us in there is still there, as far as that is watched.
    """

    login: Login
    resolve: Callable[[str, int], Awaitable[str]] = resolve
    is_local: Callable[[str], bool] = is_local
    is_loopback: Callable[[str], bool] = is_loopback
    is_met: Callable[[str], bool] = lambda address: True  # noqa: ARG005 - each answer is the same


async def read_banner(address: str, port: int) -> None:
    """A port that is open is not a server that answers: it may be a proxy's, or a process that hangs."""
    try:
        async with asyncio.timeout(_TRY_S):
            reader, writer = await asyncio.open_connection(address, port)
            try:
                greeting = await reader.read(len(_BANNER))
            finally:
                writer.close()
    except ConnectionRefusedError:
        raise MissingError(REFUSED) from None
    except (OSError, TimeoutError):
        raise MissingError(SILENT) from None
    if greeting != _BANNER:
        raise MissingError(NOT_SSH)
