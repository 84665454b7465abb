"""The leader's hold on its members: a session to each, which stays open until the leader's last word."""

from __future__ import annotations

import asyncio
import resource
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from typing import Any, Final

from azcp_runtime.contract import ExitCode
from azcp_runtime.launch.peers import Loss, LostError
from azcp_runtime.launch.tie import Tie, tied
from azcp_runtime.launch.words import Line, Word
from azcp_runtime.ssh.client import CONNECT_TIMEOUT_S, Peer, connect, own_user
from azcp_runtime.ssh.keys import JobKeys, parse_private

_DESCRIPTORS: Final = 256
"""Of all but the sessions."""

_FAREWELL_S: Final = 5.0
_SETTLE_S: Final = 2.0
"""The end of a node's session reaches mpirun and us in either order."""


class Crew:
    """The members of a job, each held from when it was met.

    It has a thread of its own: mpirun and the commands of phase 2 are waited for in the first one.

    Args:
        port: of the members' ssh servers.
        keys: the job's.
        nodes: how many there may be.

    Raises:
        PreflightError: the key cannot be used, which is no node's fault.
    """

    def __init__(self, port: int, keys: JobKeys, nodes: int) -> None:
        parse_private(keys)
        self.lost: Future[Loss] = Future()
        self._port = port
        self._keys = keys
        self._ties: dict[str, Tie] = {}
        self._watches: set[asyncio.Task[None]] = set()
        self._names: Mapping[str, str] = {}
        _make_room(nodes)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="crew", daemon=True)
        self._thread.start()

    async def meet(self, address: str) -> None:
        """Hold the member there; called in the loop of who waits.

        Raises:
            MissingError: it is not ready, and may become so.
            RefusedError: it is not the job's.
            OSError: it cannot be reached.
        """
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._hold(address), self._loop))

    def is_met(self, address: str) -> bool:
        """Whether the member there is held."""
        return address in self._ties

    def begin(self, addresses: Mapping[str, str]) -> None:
        """From now on none of these may go; who was met under another address is let go."""
        self._call(self._begin({address: host for host, address in addresses.items()}))

    def confirm(self) -> None:
        """Have each member do what is left to do once the data is in place.

        Raises:
            LostError: one could not, or is lost.
        """
        self._call(self._confirm())

    def settle(self) -> Loss | None:
        """The loss that explains a failure, which may be noticed a moment after it."""
        try:
            return self.lost.result(_SETTLE_S)
        except TimeoutError:
            return None

    def end(self, code: int, text: str) -> None:
        """The last word, to all; then nobody is held any more."""
        self._call(self._end(Line(Word.END, code, text)))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _hold(self, address: str) -> None:
        if address in self._ties:
            return
        connection = await connect(Peer(address, self._port, own_user()), self._keys, CONNECT_TIMEOUT_S)
        try:
            tie = await tied(connection, address)
        except BaseException:
            connection.abort()
            raise
        self._ties[address] = tie
        watch = asyncio.ensure_future(self._watch(address, tie))
        self._watches.add(watch)
        watch.add_done_callback(self._watches.discard)

    async def _watch(self, address: str, tie: Tie) -> None:
        reason, code = await tie.until_lost()
        if self._ties.get(address) is tie:
            del self._ties[address]
        if address in self._names:
            self._lose(address, reason, code)

    def _lose(self, address: str, reason: str, code: int) -> None:
        if not self.lost.done():
            self.lost.set_result(Loss(self._names[address], reason, code))

    async def _begin(self, names: Mapping[str, str]) -> None:
        for address in self._ties.keys() - names.keys():
            self._ties.pop(address).drop()
        self._names = names
        for address in names.keys() - self._ties.keys():
            self._lose(address, "it has gone again", ExitCode.BROADCAST)

    async def _confirm(self) -> None:
        ties = list(self._ties.values())
        for tie in ties:
            tie.send(Line(Word.WHOLE))
        everyone = asyncio.gather(*(tie.confirmed for tie in ties), return_exceptions=True)
        over: set[asyncio.Future[Any]] = {everyone, asyncio.wrap_future(self.lost)}
        await asyncio.wait(over, return_when=asyncio.FIRST_COMPLETED)
        if self.lost.done():
            raise LostError(self.lost.result())

    async def _end(self, last: Line) -> None:
        self._names = {}
        for tie in self._ties.values():
            tie.send(last)
        if self._watches:
            await asyncio.wait(set(self._watches), timeout=_FAREWELL_S)
        for watch in list(self._watches):
            watch.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)


def _make_room(nodes: int) -> None:
    """Let there be a descriptor for each session; containerd 2 starts containers with 1024 in all."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS + 2 * nodes
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
