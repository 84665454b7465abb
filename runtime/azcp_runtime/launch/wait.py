"""Wait until each node of the job answers, all at once and with one deadline; say which does not, and why."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from azcp_runtime.contract import PreflightError
from azcp_runtime.launch.network import LOOPBACK, NO_NAME, REFUSED, SILENT, MissingError, Network, read_banner

_FIRST_PAUSE_S: Final = 0.2
_LONGEST_PAUSE_S: Final = 3.0
_REPORT_EVERY_S: Final = 15.0
_LOOKUPS: Final = 64
"""Each takes a thread: the C library resolves one name at a time, and a missing name takes its time."""

_LOGINS: Final = 32
_NAMED: Final = 8
_REFUSAL_S: Final = 5.0
"""For so long a refusal may come from whoever had the address before: names are cached for about as long."""

_FRESH_S: Final = 5.0
"""Who has answered longer ago is asked again once all others have: its pod may have been replaced."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What is waited for.

    Args:
        hosts: names or addresses.
        port: of their ssh servers.
        deadline_s: how long, all together.
        own: which of them is this node, where that is known.
        needs_all: False to go on with those that answer within the deadline.
    """

    hosts: Sequence[str]
    port: int
    deadline_s: float
    own: str = ""
    needs_all: bool = True


class _Watch:
    """What is known of each node while it is waited for."""

    def __init__(self, wish: Wish, network: Network, say: Callable[[str], None]) -> None:
        self.reasons = dict.fromkeys(wish.hosts, SILENT)
        self.addresses: dict[str, str] = {}
        self._answered: dict[str, float] = {}
        self._refused: dict[str, float] = {}
        self._wish = wish
        self._network = network
        self._say = say
        self._lookups = asyncio.Semaphore(_LOOKUPS)
        self._logins = asyncio.Semaphore(_LOGINS)

    async def run(self) -> None:
        """Until all answer, one refuses for good, or the deadline is over."""
        told = asyncio.ensure_future(self._tell())
        try:
            async with asyncio.timeout(self._wish.deadline_s):
                await self._round(self._wish.hosts)
                stale = time.monotonic() - _FRESH_S
                await self._round([host for host, when in self._answered.items() if when < stale])
                while gone := [host for host in self._wish.hosts if not self._is_met(host)]:
                    await self._round(gone)
        except TimeoutError:
            pass  # the reasons say who is missing
        finally:
            told.cancel()
            await asyncio.gather(told, return_exceptions=True)

    async def _round(self, hosts: Sequence[str]) -> None:
        waits = [asyncio.ensure_future(self._one(host)) for host in hosts]
        if not waits:
            return
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_EXCEPTION)
            for wait in done:
                wait.result()
        finally:
            for task in waits:
                task.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def _one(self, host: str) -> None:
        pause = _FIRST_PAUSE_S
        while True:
            try:
                self.addresses[host] = await self._reach(host)
            except MissingError as missing:
                self.reasons[host] = str(missing)
            except PreflightError as error:
                self.reasons[host] = str(error)
                if self._is_final(host):
                    raise
            else:
                self.reasons.pop(host, None)
                self._answered[host] = time.monotonic()
                return
            # Apart from each other: a thousand names at the same instant would drown the resolver.
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    def _is_met(self, host: str) -> bool:
        address = self.addresses[host]
        return self._network.is_local(address) or self._network.is_met(address)

    def _is_final(self, host: str) -> bool:
        """Whether a refusal has lasted too long to be somebody else's; never where nodes may be left out."""
        since = self._refused.setdefault(host, time.monotonic())
        return self._wish.needs_all and time.monotonic() - since > _REFUSAL_S

    async def _reach(self, host: str) -> str:
        async with self._lookups:
            address = await self._network.resolve(host, self._wish.port)
        if self._network.is_loopback(address) and len(self._wish.hosts) > 1:
            raise MissingError(LOOPBACK)
        own = self._wish.own
        if self._network.is_local(address):
            if own and host != own:
                raise MissingError(f"resolves to {address}, which is this node's own")
            return address
        if host == own:
            raise MissingError(
                f"resolves to {address}, which is not this node's, though the node is this one"
            )
        await read_banner(address, self._wish.port)
        try:
            async with self._logins:
                await self._network.login(address)
        except TimeoutError:  # of the login, not of the wait, which cancels
            raise MissingError(SILENT) from None
        except OSError as error:
            raise MissingError(f"{REFUSED}: {error}") from None
        return address

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(_REPORT_EVERY_S)
            count = len(self.reasons)
            self._say(f"waiting for {count} of {len(self._wish.hosts)} nodes: {named(self.reasons)}")


def _remedy(reasons: Collection[str]) -> str:
    if NO_NAME in reasons:
        return "have the names resolve here, by the node's /etc/hosts perhaps, or give addresses with --hosts"
    return "look at the nodes' own logs; --wait gives them more time"


def named(reasons: Mapping[str, str]) -> str:
    """The first of the missing nodes with their reasons, and how many there are beside them."""
    first = ", ".join(f"{host} ({reason})" for host, reason in list(reasons.items())[:_NAMED])
    return f"{first} and {len(reasons) - _NAMED} more" if len(reasons) > _NAMED else first


def wait_for(wish: Wish, network: Network, say: Callable[[str], None]) -> Mapping[str, str]:
    """The address of each host, in the order they were given, once all of them answer.

    Where not all are needed, of those that answer within the deadline.

    Raises:
        PreflightError: some are missing; each is named with what was last seen of it.
    """
    began = time.monotonic()

    async def watch() -> _Watch:
        watch = _Watch(wish, network, say)
        # Which node it was is in the reasons.
        with contextlib.suppress(PreflightError):
            await watch.run()
        return watch

    watched = asyncio.run(watch())
    seconds = time.monotonic() - began
    if watched.reasons and not wish.needs_all:
        say(
            f"{len(watched.reasons)} of {len(wish.hosts)} nodes are left out after {seconds:.0f} s: "
            + named(watched.reasons)
        )
        return {host: watched.addresses[host] for host in wish.hosts if host not in watched.reasons}
    if watched.reasons:
        raise PreflightError(
            f"{len(watched.reasons)} of {len(wish.hosts)} nodes are missing after {seconds:.0f} s: "
            + "; ".join(f"{host}: {reason}" for host, reason in watched.reasons.items()),
            remedy=_remedy(watched.reasons.values()),
        )
    say(f"{len(wish.hosts)} nodes answer after {seconds:.1f} s")
    return {host: watched.addresses[host] for host in wish.hosts}
