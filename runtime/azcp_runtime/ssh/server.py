"""The bundled ssh server: any uid, no passwd entry, no PAM, no shell; only the job's key opens it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import asyncssh

from azcp_runtime.contract import AzcpError, PreflightError
from azcp_runtime.ssh.keys import JobKeys, make_host_key
from azcp_runtime.ssh.request import requested_argv
from azcp_runtime.ssh.state import Surroundings

LOGIN_GRACE_S: Final = 30
MOST_CONNECTIONS: Final = 512
KEEPALIVE_S: Final = 30
# Ten unanswered ones: a node that is busy with 400 GB is not a dead one.
KEEPALIVES: Final = 10
DRAIN_S: Final = 30.0
KILL_GRACE_S: Final = 10.0
_CANNOT_RUN: Final = 127
"""The exit status by which a shell says that a command could not be started."""

Run = Callable[["_Process"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Service:
    """What the server offers.

    Args:
        keys: our own copies of the job's.
        container: the environment and folder that commands start in.
        listen: the address; empty for all.
        port: 0 for any that is free.
    """

    keys: JobKeys
    container: Surroundings
    listen: str
    port: int


class _Process(asyncssh.SSHServerProcess[bytes]):
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


class _Server(asyncssh.SSHServer):
    """One connection: who it is, and the bound on how many there may be."""

    def __init__(self, open_connections: set[asyncssh.SSHServerConnection], run: Run) -> None:
        self._open = open_connections
        self._run = run
        self._connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        """Count it, or turn it away."""
        self._connection = conn
        if len(self._open) >= MOST_CONNECTIONS:
            log(f"{peer_name(conn)} turned away: {MOST_CONNECTIONS} connections are open")
            conn.abort()
            return
        self._open.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell why, unless the client simply left."""
        if self._connection:
            self._open.discard(self._connection)
            if exc and not isinstance(exc, asyncssh.ConnectionLost):
                log(f"{peer_name(self._connection)} ended: {str(exc)[:200]}")

    def session_requested(self) -> _Process:
        """A command, whatever it will be."""
        return _Process(self._run)

    def auth_completed(self) -> None:
        """The key was right."""
        if self._connection:
            log(f"{peer_name(self._connection)} came in with the job's key")


def log(text: str) -> None:
    """One line for one event."""
    line = "".join(c if c.isprintable() else "?" for c in text)
    print(f"azcp-sshd: {line}", file=sys.stderr, flush=True)


def peer_name(connection: asyncssh.SSHServerConnection) -> str:
    """Address and port of the other side."""
    host, port = (connection.get_extra_info("peername") or ("somebody", 0))[:2]
    return f"{host}:{port}"


async def serve(service: Service) -> None:
    """Answer until SIGTERM or SIGINT; children that are left are ended then.

    Raises:
        PreflightError: the address cannot be listened on, or authorized_keys holds no key.
    """
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    sessions: set[asyncio.Task[None]] = set()
    connections: set[asyncssh.SSHServerConnection] = set()
    acceptor = await _listen(service, sessions, connections)
    log(f"listening on port {acceptor.get_port()}")
    await stopped.wait()
    acceptor.close()
    for connection in list(connections):
        connection.abort()
    for session in list(sessions):
        session.cancel()
    await asyncio.gather(*sessions, return_exceptions=True)
    log("stopped")


async def _listen(
    service: Service,
    sessions: set[asyncio.Task[None]],
    connections: set[asyncssh.SSHServerConnection],
) -> asyncssh.SSHAcceptor:
    host_key, certificate = make_host_key(service.keys)
    fingerprint = asyncssh.read_public_key(f"{host_key}.pub").get_fingerprint()
    signed = "signed by the job's key" if certificate else "not signed, for the job's private key is not here"
    log(f"host key {fingerprint}, {signed}")

    async def session(process: _Process) -> None:
        task = asyncio.ensure_future(_session(process, service.container))
        sessions.add(task)
        task.add_done_callback(sessions.discard)
        await task

    try:
        return await asyncssh.listen(
            service.listen,
            service.port,
            server_factory=lambda: _Server(connections, session),
            server_host_keys=[(str(host_key), str(certificate)) if certificate else str(host_key)],
            authorized_client_keys=asyncssh.import_authorized_keys(service.keys.authorized.decode()),
            encoding=None,
            allow_pty=False,
            agent_forwarding=False,
            x11_forwarding=False,
            compression_algs=None,
            login_timeout=LOGIN_GRACE_S,
            keepalive_interval=KEEPALIVE_S,
            keepalive_count_max=KEEPALIVES,
            reuse_address=True,
            backlog=MOST_CONNECTIONS,
        )
    except OSError as error:
        raise PreflightError(
            f"azcp-sshd cannot listen on port {service.port}: {error.strerror or error}",
            remedy="choose another with --port or AZCP_SSH_PORT, the same on all nodes",
        ) from error
    except ValueError as error:
        raise PreflightError(
            f"the authorized keys in {service.keys.folder} cannot be used: {error}",
            remedy="they are lines as in ~/.ssh/authorized_keys",
        ) from error


async def _session(process: _Process, container: Surroundings) -> None:
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
    log(f"{peer} {what}, process {child.pid}: {status}")


def _folder(cwd: str) -> str:
    return cwd if os.path.isdir(cwd) else "/"


async def _until_over(process: _Process, child: asyncio.subprocess.Process) -> str:
    process.has_started(child.pid)
    await process.redirect(child.stdin, child.stdout, child.stderr)
    ended = asyncio.ensure_future(child.wait())
    gone = asyncio.ensure_future(process.channel.wait_closed())
    try:
        await asyncio.wait({ended, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            return "ended, for its connection is lost"
        await _drain(process)
    finally:
        for waiting in (ended, gone):
            waiting.cancel()
    code = child.returncode or 0
    if code < 0:
        process.exit_with_signal(signal.Signals(-code).name.removeprefix("SIG"))
        return f"ended by {signal.Signals(-code).name}"
    process.exit(code)
    return f"ended with {code}"


async def _drain(process: _Process) -> None:
    """Pass the rest of the output on. An orphan may hold the pipes for ever: the job must not wait for it."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_S):
            await process.stdout.drain()
            await process.stderr.drain()


async def _end_group(child: asyncio.subprocess.Process) -> None:
    if child.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGTERM)
    try:
        await asyncio.wait_for(child.wait(), KILL_GRACE_S)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        await child.wait()
