"""The bundled ssh server: any uid, no passwd entry, no PAM, no shell; only the job's key opens it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from azcp_runtime.contract import PreflightError
from azcp_runtime.ssh.keys import JobKeys, make_host_key
from azcp_runtime.ssh.library import asyncssh
from azcp_runtime.ssh.session import Process, Run, log, run_command
from azcp_runtime.ssh.state import Surroundings

LOGIN_GRACE_S: Final = 30
MOST_CONNECTIONS: Final = 512
KEEPALIVE_S: Final = 30
# Ten unanswered ones: a node that is busy with 400 GB is not a dead one.
KEEPALIVES: Final = 10


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


class _Server(asyncssh.SSHServer):
    """One connection: who it is, and the bound on how many there may be."""

    def __init__(self, open_connections: set[asyncssh.SSHServerConnection], run: Run) -> None:
        self._open = open_connections
        self._run = run
        self._connection: asyncssh.SSHServerConnection | None = None
        self._is_in = False

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        """Count it, or turn it away."""
        self._connection = conn
        if len(self._open) >= MOST_CONNECTIONS:
            log(f"{peer_name(conn)} turned away: {MOST_CONNECTIONS} connections are open")
            conn.abort()
            return
        self._open.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell why, unless the client simply left: a readiness probe hangs up without a word."""
        if self._connection:
            self._open.discard(self._connection)
            is_probe = isinstance(exc, ConnectionResetError) and not self._is_in
            if exc and not is_probe and not isinstance(exc, asyncssh.ConnectionLost):
                log(f"{peer_name(self._connection)} ended: {str(exc)[:200]}")

    def session_requested(self) -> Process:
        """A command, whatever it will be."""
        return Process(self._run)

    def auth_completed(self) -> None:
        """The key was right."""
        self._is_in = True
        if self._connection:
            log(f"{peer_name(self._connection)} came in with the job's key")


def peer_name(connection: asyncssh.SSHServerConnection) -> str:
    """Address and port of the other side."""
    host, port = (connection.get_extra_info("peername") or ("somebody", 0))[:2]
    return f"{host}:{port}"


async def serve(service: Service, ready: Callable[[], None]) -> None:
    """Answer until SIGTERM or SIGINT.

    Args:
        service: what is offered.
        ready: called once the port is ours.

    Raises:
        PreflightError: the address cannot be listened on, or authorized_keys holds no key.
    """
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    await serve_until(service, ready, stopped)


async def serve_until(service: Service, ready: Callable[[], None], stopped: asyncio.Event) -> None:
    """Answer until an event; children that are left are ended then.

    Args:
        service: what is offered.
        ready: called once the port is ours.
        stopped: the event.

    Raises:
        PreflightError: the address cannot be listened on, or authorized_keys holds no key.
    """
    sessions: set[asyncio.Task[None]] = set()
    connections: set[asyncssh.SSHServerConnection] = set()
    acceptor = await _listen(service, sessions, connections)
    ready()
    log(f"listening on port {acceptor.get_port()}")
    await stopped.wait()
    acceptor.close()
    for connection in list(connections):
        connection.abort()
    await asyncio.gather(*sessions, return_exceptions=True)  # each ends what it has started
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

    async def session(process: Process) -> None:
        task = asyncio.ensure_future(run_command(process, service.container))
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
