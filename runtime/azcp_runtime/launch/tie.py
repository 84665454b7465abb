"""The leader's session to one member: beats both ways, and whatever else they have to say."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from azcp_runtime.contract import ExitCode, PreflightError
from azcp_runtime.isolate import command
from azcp_runtime.launch.network import MissingError
from azcp_runtime.launch.words import BEAT_S, SILENCE_S, Line, Word, decode
from azcp_runtime.ssh.client import Remote, open_on
from azcp_runtime.ssh.library import asyncssh

_ANSWER_S: Final = 15.0
"""A process starts on the other side, on a node that may be busy."""


class _Words:
    """A session's output as lines; None is its end."""

    def __init__(self) -> None:
        self.lines: asyncio.Queue[Line | None] = asyncio.Queue()
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Take some of it."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        for line in map(decode, whole):
            if line:
                self.lines.put_nowait(line)

    def end(self) -> None:
        """There is no more."""
        self.lines.put_nowait(None)


class _Talk:
    """What the other side has to say about itself; the last of it explains why it does not answer."""

    def __init__(self) -> None:
        self.text = b""

    def feed(self, data: bytes) -> None:
        """Take some of it."""
        self.text = (self.text + data)[-1000:]

    def end(self) -> None:
        """There is no more."""

    def __str__(self) -> str:
        """Its last line."""
        lines = self.text.decode("utf-8", "replace").strip().splitlines()
        return "".join(c if c.isprintable() else "?" for c in lines[-1]) if lines else ""


class Tie:
    """The session to one member."""

    def __init__(self, channel: asyncssh.SSHClientChannel[bytes], remote: Remote, words: _Words) -> None:
        self.confirmed = asyncio.get_running_loop().create_future()
        self._channel = channel
        self._remote = remote
        self._words = words

    def send(self, line: Line) -> None:
        """Say something; nothing where nobody is there any more."""
        with contextlib.suppress(OSError):
            self._channel.write(line.encode())

    def drop(self) -> None:
        """Leave without a word."""
        self._remote.drop()

    async def until_lost(self) -> tuple[str, int]:
        """What ended it: a reason, and what it makes the job end with."""
        beating = asyncio.ensure_future(self._beat())
        try:
            return await self._listen()
        finally:
            beating.cancel()
            self._remote.drop()
            self.confirmed.cancel()

    async def _listen(self) -> tuple[str, int]:
        while True:
            try:
                line = await asyncio.wait_for(self._words.lines.get(), SILENCE_S)
            except TimeoutError:
                return f"no sign of life for {SILENCE_S:.0f} s", ExitCode.BROADCAST
            if line is None:
                return "it was killed, or its connection is lost", ExitCode.BROADCAST
            if line.word is Word.DONE and not self.confirmed.done():
                self.confirmed.set_result(None)
            elif line.word is Word.FAILED:
                return line.text, line.code
            elif line.word is Word.STOPPED:
                return line.text, ExitCode.RESUMABLE
            elif line.word is Word.BYE:
                return "it has left", ExitCode.BROADCAST

    async def _beat(self) -> None:
        while True:
            self.send(Line(Word.BEAT))
            await asyncio.sleep(BEAT_S)


async def tied(connection: asyncssh.SSHClientConnection, address: str) -> Tie:
    """The session, once the member has answered; the connection is its own.

    Raises:
        MissingError: it does not, and may do so later.
    """
    words, talk = _Words(), _Talk()
    try:
        channel, remote = await open_on(connection, address, command("azcp-tether")[0], words, talk)
        answer = await asyncio.wait_for(words.lines.get(), _ANSWER_S)
    except PreflightError as error:
        raise MissingError(str(error)) from None
    if answer and answer.word is Word.HELD:
        return Tie(channel, remote, words)
    if answer and answer.word is Word.BUSY:
        raise MissingError("it still follows an earlier leader")
    raise MissingError(str(talk) or "azcp-launch does not serve there")
