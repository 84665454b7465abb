"""One command that a client has asked for: started, fed, signalled, and ended with its connection."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from azcp_runtime.contract import AzcpError
from azcp_runtime.ssh.library import asyncssh
from azcp_runtime.ssh.request import requested_argv
from azcp_runtime.ssh.state import Surroundings

DRAIN_S: Final = 30.0
KILL_GRACE_S: Final = 10.0
QUIET_S: Final = 5.0
_BLOCK_BYTES: Final = 1 << 16
_CANNOT_RUN: Final = 127
"""The exit status by which a shell says that a command could not be started."""

Run = Callable[["Process"], Awaitable[None]]


def log(text: str) -> None:
    """One line for one event."""
    line = "".join(c if c.isprintable() else "?" for c in text)
    print(f"azcp-sshd: {line}", file=sys.stderr, flush=True)


class Process(asyncssh.SSHServerProcess[bytes]):
    """One command. Signals reach all of its group, as with OpenSSH, even after its input has ended."""

    def __init__(self, run: Run) -> None:
        super().__init__(lambda _: run(self), None, 3, allow_scp=False)
        self._group = 0
        self._early: list[signal.Signals] = []

    def signal_received(self, name: str) -> None:
        """Pass it on, or keep it until there is somebody to get it."""
        number = signal.Signals.__members__.get(f"SIG{name}")
        if number is None:
            return
        if not self._group:
            self._early.append(number)
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._group, number)

    def has_started(self, group: int) -> None:
        """From now on there is somebody."""
        self._group = group
        for number in self._early:
            self.signal_received(number.name.removeprefix("SIG"))


async def run_command(process: Process, container: Surroundings) -> None:
    """Run what was asked for until it ends or its client is gone.

    Args:
        process: the request.
        container: the environment and folder that it starts in.
    """
    host, port = process.get_extra_info("peername")[:2]
    peer = f"{host}:{port}"
    try:
        argv = requested_argv(process.command)
        child = await asyncio.create_subprocess_exec(
            *argv,
            env=dict(container.env),
            cwd=_folder(container.cwd),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except (AzcpError, OSError) as error:
        log(f"{peer} was refused a command: {error}")
        process.stderr.write(f"azcp-sshd: {error}\n".encode())
        process.exit(_CANNOT_RUN)
        return
    # Only the first word: the others may hold what is nobody's business.
    what = Path(argv[0]).name
    log(f"{peer} runs {what}, process {child.pid}")
    try:
        status = await _until_over(process, child)
    finally:
        await _end_group(child)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait_closed(), DRAIN_S)
    log(f"{peer} {what}, process {child.pid}: {status}")


def _folder(cwd: str) -> str:
    # Docker enters a WORKDIR as root before it takes the uid on; a process of that uid may not be able to.
    return cwd if os.path.isdir(cwd) and os.access(cwd, os.X_OK) else "/"


async def _until_over(process: Process, child: asyncio.subprocess.Process) -> str:
    process.has_started(child.pid)
    # The end of one stream is not the end of the other, and the channel has only one to tell.
    await process.redirect(stdin=child.stdin, send_eof=False)
    pumps = [Pump(child.stdout, process.stdout), Pump(child.stderr, process.stderr)]
    ended = asyncio.ensure_future(child.wait())
    gone = asyncio.ensure_future(process.channel.wait_closed())
    try:
        await asyncio.wait({ended, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            return "ended, for its connection is lost"
        for pump in pumps:
            await pump.finish()
    finally:
        for waiting in (ended, gone, *(pump.task for pump in pumps)):
            waiting.cancel()
    code = child.returncode or 0
    if code < 0:
        process.exit_with_signal(signal.Signals(-code).name.removeprefix("SIG"))
        return f"ended by {signal.Signals(-code).name}"
    process.exit(code)
    return f"ended with {code}"


class Pump:
    """One stream of a command on its way to the client, as fast as the client takes it.

    Not asyncssh's own redirection: where the client is slow that reads one stream twice at a time (2.24).

    Args:
        source: the command's end.
        target: the channel's.
    """

    def __init__(self, source: asyncio.StreamReader | None, target: asyncssh.SSHWriter[bytes]) -> None:
        self._moved = 0
        self._is_reading = True
        self.task = asyncio.ensure_future(self._run(source, target))

    async def finish(self) -> None:
        """Wait for its end, or until nothing comes any more: an orphan may hold the pipe for ever."""
        before = -1
        while not self.task.done() and not (self._is_reading and self._moved == before):
            before = self._moved
            await asyncio.wait({self.task}, timeout=QUIET_S)

    async def _run(self, source: asyncio.StreamReader | None, target: asyncssh.SSHWriter[bytes]) -> None:
        with contextlib.suppress(OSError, asyncssh.Error):  # the client is gone, which ends the command too
            while source and (block := await source.read(_BLOCK_BYTES)):
                self._is_reading = False
                target.write(block)
                await target.drain()
                self._moved += len(block)
                self._is_reading = True


async def _end_group(child: asyncio.subprocess.Process) -> None:
    if child.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGTERM)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(child.wait(), KILL_GRACE_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)  # also what the first of them has left behind
    await child.wait()
