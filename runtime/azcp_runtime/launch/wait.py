"""Wait until each node of the job answers, all at once and with one deadline; say which does not, and why."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from azcp_runtime.contract import PreflightError
from azcp_runtime.launch.network import LOOPBACK, REFUSED, SILENT, MissingError, Network, read_banner

_FIRST_PAUSE_S: Final = 0.2
_LONGEST_PAUSE_S: Final = 3.0
_REPORT_EVERY_S: Final = 15.0
_LOOKUPS: Final = 64
"""Each takes a thread: the C library resolves one name at a time, and a missing name takes its time."""

_LOGINS: Final = 32
_NAMED: Final = 8


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


class _Watch:
    """What is known of each node while it is waited for."""

    def __init__(self, wish: Wish, network: Network, say: Callable[[str], None]) -> None:
        self.reasons = dict.fromkeys(wish.hosts, SILENT)
        self.addresses: dict[str, str] = {}
        self._wish = wish
        self._network = network
        self._say = say
        self._lookups = asyncio.Semaphore(_LOOKUPS)
        self._logins = asyncio.Semaphore(_LOGINS)

    async def run(self) -> None:
        """Until all answer, one refuses for good, or the deadline is over."""
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
            except MissingError as missing:
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
        async with self._lookups:
            address = await self._network.resolve(host, self._wish.port)
        if self._network.is_loopback(address) and len(self._wish.hosts) > 1:
            raise MissingError(LOOPBACK)
        if self._network.is_local(address):
            return address
        await read_banner(address, self._wish.port)
        try:
            async with self._logins:
                await self._network.login(address)
        except TimeoutError:
            raise MissingError(SILENT) from None
        except OSError as error:
            raise MissingError(f"{REFUSED}: {error}") from None
        return address

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(_REPORT_EVERY_S)
            missing = list(self.reasons.items())
            named = ", ".join(f"{host} ({reason})" for host, reason in missing[:_NAMED])
            rest = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
            self._say(f"waiting for {len(missing)} of {len(self._wish.hosts)} nodes: {named}{rest}")


def wait_for(wish: Wish, network: Network, say: Callable[[str], None]) -> Mapping[str, str]:
    """The address of each host, in the order they were given, once all of them answer.

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
    if watched.reasons:
        raise PreflightError(
            f"{len(watched.reasons)} of {len(wish.hosts)} nodes are missing after {seconds:.0f} s: "
            + "; ".join(f"{host}: {reason}" for host, reason in watched.reasons.items()),
            remedy="look at the nodes' own logs; --wait gives them more time",
        )
    say(f"{len(wish.hosts)} nodes answer after {seconds:.1f} s")
    return {host: watched.addresses[host] for host in wish.hosts}
