"""A member's part: it serves, follows the one leader that comes in, and ends as that leader has ended."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from azcp_runtime.contract import AzcpError, ExitCode, PreflightError
from azcp_runtime.launch.words import SILENCE_S, Line, Word, decode, member_socket

_STOPPING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_REPORT_EVERY_S: Final = 15.0
_FAREWELL_S: Final = 1.0

Serve = Callable[[Callable[[], None], asyncio.Event], Awaitable[None]]
"""Let the leader's sessions in: call the first once they can come, and return after the second is set."""


@dataclass(frozen=True, slots=True)
class Post:
    """What a member is there for.

    Args:
        leader: the first node, as the user calls it.
        patience_s: how long it may take to come in.
        once_whole: what is left to do once the data is in place on every node.
        say: where events are told.
    """

    leader: str
    patience_s: float
    once_whole: Callable[[], None]
    say: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Ending:
    """How it ended.

    Args:
        code: the exit code.
        text: why.
    """

    code: int
    text: str


class _Member:
    def __init__(self, post: Post, state: Path) -> None:
        self._post = post
        self._state = state
        self._came = asyncio.Event()
        self._ending: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self._leader: asyncio.StreamWriter | None = None
        self._left = asyncio.Event()
        self._stopped = asyncio.Event()
        self._talks: set[asyncio.Future[None]] = set()

    async def run(self, serve: Serve) -> Ending | None:
        """How the leader ended, or we before it; None where no leader came in."""
        loop = asyncio.get_running_loop()
        for number in _STOPPING:
            loop.add_signal_handler(number, self._stop, number)
        serving = asyncio.ensure_future(serve(self._open, self._stopped))
        try:
            ending = await self._until_over(serving)
            if ending and ending.code == ExitCode.RESUMABLE and self._leader:
                await self._excuse(ending)
            return ending
        finally:
            self._stopped.set()
            for talk in self._talks:
                talk.cancel()
            await asyncio.gather(*self._talks, return_exceptions=True)
            await serving

    async def _until_over(self, serving: asyncio.Future[None]) -> Ending | None:
        talking = asyncio.ensure_future(self._talk())
        came = asyncio.ensure_future(self._came.wait())
        over: set[asyncio.Future[None] | asyncio.Future[Ending]] = {serving, self._ending}
        try:
            await asyncio.wait(
                {*over, came}, timeout=self._post.patience_s, return_when=asyncio.FIRST_COMPLETED
            )
            if came.done():
                await asyncio.wait(over, return_when=asyncio.FIRST_COMPLETED)
        finally:
            talking.cancel()
            came.cancel()
        if serving.done():
            serving.result()
            raise PreflightError("the ssh server has ended by itself", remedy="its last words are above")
        return self._ending.result() if self._ending.done() else None

    def _open(self) -> None:
        """The node can be reached: now the leader may come in."""
        self._begin(self._let_in(member_socket(self._state)))

    def _begin(self, talk: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(talk)
        self._talks.add(task)
        task.add_done_callback(self._talks.discard)

    async def _let_in(self, door: socket.socket) -> None:
        with door:
            while True:
                who, _ = await asyncio.get_running_loop().sock_accept(door)
                self._begin(self._follow(who))

    async def _follow(self, who: socket.socket) -> None:
        reader, writer = await asyncio.open_unix_connection(sock=who)
        try:
            if self._leader is not None or self._ending.done():
                writer.write(Line(Word.BUSY).encode())
                return
            self._leader = writer
            writer.write(Line(Word.HELD).encode())
            ending = await self._listen(reader, writer)
            self._leader = None
            if ending and not self._ending.done():
                self._ending.set_result(ending)
            self._left.set()
        finally:
            with contextlib.suppress(OSError):
                await writer.drain()
            writer.close()

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Ending | None:
        """How the leader ended; None where it has gone before it spoke, and may come again."""
        leader = self._post.leader
        while True:
            try:
                data = await asyncio.wait_for(reader.readline(), SILENCE_S)
            except TimeoutError:
                if not self._came.is_set():
                    return None
                return _gone(f"the leader {leader} is lost: no sign of life for {SILENCE_S:.0f} s")
            except OSError:
                data = b""
            if not data:
                how = "it was killed, or its connection is lost"
                return _gone(f"the leader {leader} is gone: {how}") if self._came.is_set() else None
            line = decode(data)
            if line and line.word is Word.END:
                writer.write(Line(Word.BYE).encode())
                return Ending(line.code, f"the leader {leader} has ended with {line.code}: {line.text}")
            if line:
                self._answer(line, writer)

    def _answer(self, line: Line, writer: asyncio.StreamWriter) -> None:
        if line.word is Word.BEAT:
            if not self._came.is_set():
                self._post.say(f"the leader {self._post.leader} is there")
                self._came.set()
            writer.write(line.encode())
        elif line.word is Word.WHOLE:
            try:
                self._post.once_whole()
            except AzcpError as error:
                self._post.say(str(error))
                writer.write(Line(Word.FAILED, error.exit_code, str(error)).encode())
            else:
                writer.write(Line(Word.DONE).encode())

    def _stop(self, number: int) -> None:
        if not self._ending.done():
            text = f"stopped by {signal.Signals(number).name}"
            self._ending.set_result(Ending(ExitCode.RESUMABLE, text))

    async def _excuse(self, ending: Ending) -> None:
        """Tell the leader why we go, and let it go first: its sessions end with our server."""
        if self._leader:
            self._leader.write(Line(Word.STOPPED, ending.code, ending.text).encode())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._left.wait(), _FAREWELL_S)

    async def _talk(self) -> None:
        while not self._came.is_set():
            await asyncio.sleep(_REPORT_EVERY_S)
            if not self._came.is_set():
                self._post.say(f"waiting for the leader {self._post.leader}")


def _gone(text: str) -> Ending:
    return Ending(ExitCode.BROADCAST, text)


def follow_leader(post: Post, state: Path, serve: Serve) -> Ending | None:
    """How the leader ended, or this node before it; None where no leader came in.

    Args:
        post: what this node is there for.
        state: the folder where it can be spoken to.
        serve: the ssh server.

    Raises:
        PreflightError: it cannot serve.
    """

    async def member() -> Ending | None:
        return await _Member(post, state).run(serve)

    return asyncio.run(member())
