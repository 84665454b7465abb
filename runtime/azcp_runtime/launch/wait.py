"""Wait until each node of the job answers, all at once and with one deadline; say which does not, and why."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from azcp_runtime.contract import PreflightError

NO_NAME: Final = "does not resolve"
REFUSED: Final = "refused"
SILENT: Final = "no answer"
NOT_SSH: Final = "no ssh server on that port"
LOOPBACK: Final = "resolves to this machine's loopback, which no other node can reach"

_BANNER: Final = b"SSH-"
_TRY_S: Final = 5.0
_FIRST_PAUSE_S: Final = 0.2
_LONGEST_PAUSE_S: Final = 3.0
_REPORT_EVERY_S: Final = 15.0
_RESOLVERS: Final = 64
"""Threads: the C library resolves one name at a time, and a missing name takes its time."""

_LOGINS: Final = 32
_NAMED: Final = 8

Login = Callable[[str], Awaitable[None]]
"""Prove to one address that we hold the job's key; raises what is wrong."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What is waited for.

    Args:
        hosts: names or addresses.
        port: of their ssh servers.
        deadline_s: how long, all together.
    """

    hosts: Sequence[str]
    port: int
    deadline_s: float


class _Missing(Exception):  # noqa: N818 - a state of a node, seldom an error
    """The node is not there yet."""


class _Watch:
    """What is known of each node while it is waited for."""

    def __init__(self, wish: Wish, login: Login, say: Callable[[str], None]) -> None:
        self.reasons = dict.fromkeys(wish.hosts, SILENT)
        self.addresses: dict[str, str] = {}
        self._wish = wish
        self._login = login
        self._say = say
        self._logins = asyncio.Semaphore(_LOGINS)

    async def run(self) -> None:
        """Until all answer, one refuses for good, or the deadline is over."""
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_RESOLVERS))
        told = asyncio.ensure_future(self._tell())
        waits = [asyncio.ensure_future(self._one(host)) for host in self._wish.hosts]
        try:
            done, _ = await asyncio.wait(
                waits, timeout=self._wish.deadline_s, return_when=asyncio.FIRST_EXCEPTION
            )
            for wait in done:
                wait.result()
        finally:
            for task in (*waits, told):
                task.cancel()
            await asyncio.gather(*waits, told, return_exceptions=True)

    async def _one(self, host: str) -> None:
        pause = _FIRST_PAUSE_S
        while True:
            try:
                self.addresses[host] = await self._reach(host)
            except _Missing as missing:
                self.reasons[host] = str(missing)
            except PreflightError as error:
                self.reasons[host] = str(error)
                raise
            else:
                del self.reasons[host]
                return
            # Apart from each other: a thousand names at the same instant would drown the resolver.
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    async def _reach(self, host: str) -> str:
        address = await resolve(host, self._wish.port)
        if is_loopback(address) and len(self._wish.hosts) > 1:
            raise _Missing(LOOPBACK)
        if is_local(address):
            return address
        await _read_banner(address, self._wish.port)
        try:
            async with self._logins:
                await self._login(address)
        except TimeoutError:
            raise _Missing(SILENT) from None
        except OSError as error:
            raise _Missing(f"{REFUSED}: {error}") from None
        return address

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(_REPORT_EVERY_S)
            missing = list(self.reasons.items())
            named = ", ".join(f"{host} ({reason})" for host, reason in missing[:_NAMED])
            rest = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
            self._say(f"waiting for {len(missing)} of {len(self._wish.hosts)} nodes: {named}{rest}")


def wait_for(wish: Wish, login: Login, say: Callable[[str], None]) -> Mapping[str, str]:
    """The address of each host, in the order they were given, once all of them answer.

    Raises:
        PreflightError: some are missing; each is named with what was last seen of it.
    """
    began = time.monotonic()

    async def watch() -> _Watch:
        watch = _Watch(wish, login, say)
        # Which node it was is in the reasons.
        with contextlib.suppress(PreflightError):
            await watch.run()
        return watch

    watched = asyncio.run(watch())
    seconds = time.monotonic() - began
    if watched.reasons:
        raise PreflightError(
            f"{len(watched.reasons)} of {len(wish.hosts)} nodes are missing after {seconds:.0f} s: "
            + "; ".join(f"{host}: {reason}" for host, reason in watched.reasons.items()),
            remedy="look at the nodes' own logs; --wait gives them more time",
        )
    say(f"{len(wish.hosts)} nodes answer after {seconds:.1f} s")
    return {host: watched.addresses[host] for host in wish.hosts}


async def resolve(host: str, port: int) -> str:
    """An address of the host, one of IPv4 where it has one: Open MPI's own channel speaks no other."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        raise _Missing(NO_NAME) from None
    addresses = [(str(entry[4][0]), entry[0]) for entry in found]
    return min(addresses, key=lambda known: (is_loopback(known[0]), known[1] != socket.AF_INET))[0]


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


async def _read_banner(address: str, port: int) -> None:
    """A port that is open is not a server that answers: it may be a proxy's, or a process that hangs."""
    try:
        async with asyncio.timeout(_TRY_S):
            reader, writer = await asyncio.open_connection(address, port)
            try:
                greeting = await reader.read(len(_BANNER))
            finally:
                writer.close()
    except ConnectionRefusedError:
        raise _Missing(REFUSED) from None
    except (OSError, TimeoutError):
        raise _Missing(SILENT) from None
    if greeting != _BANNER:
        raise _Missing(NOT_SSH)
