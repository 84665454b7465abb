"""A command on another node: the node proves to be the job's, we prove to be, and its output comes here."""

from __future__ import annotations

import asyncio
import os
import pwd
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from azcp_runtime.contract import PreflightError
from azcp_runtime.ssh.keys import JobKeys, parse_private
from azcp_runtime.ssh.library import asyncssh

CONNECT_TIMEOUT_S: Final = 30.0
ATTEMPTS: Final = 4
_PAUSE_S: Final = 1.0
LOST: Final = 255
"""What ssh itself exits with where the command could not be run, or its end was not seen."""

_ENDED_BY_SIGNAL: Final = 128


@dataclass(frozen=True, slots=True)
class Peer:
    """Where to connect, and with what.

    Args:
        host: a name or an address.
        port: of its server.
        user: the login name.
    """

    host: str
    port: int
    user: str


class RefusedError(PreflightError):
    """The node answered, and will not let us in or is not who it should be: waiting does not help."""


class Sink(Protocol):
    """Where the command's output goes."""

    def feed(self, data: bytes) -> None:
        """Take some of it."""

    def end(self) -> None:
        """There is no more."""


class Remote(asyncssh.SSHClientSession[bytes]):
    """A command on another node.

    Its output goes to plain writes: asyncio would make the descriptors non-blocking, and mpirun shares them.

    Args:
        connection: its own, and no other command's.
        stdout: takes its standard output.
        stderr: takes its standard error.
    """

    def __init__(self, connection: asyncssh.SSHClientConnection, stdout: Sink, stderr: Sink) -> None:
        self._connection = connection
        self._sinks = {None: stdout, asyncssh.EXTENDED_DATA_STDERR: stderr}
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._status: int | None = None
        self._lost = asyncio.get_running_loop().create_future()

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        """Keep the channel."""
        self._channel = chan

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        """Pass it on."""
        self._sinks[datatype].feed(data)

    def exit_status_received(self, status: int) -> None:
        """Keep it for our own exit."""
        self._status = status

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:  # noqa: ARG002
        """Keep it as a shell says it."""
        self._status = _ENDED_BY_SIGNAL + signal_number(signal)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the status tells
        """The command is over, or out of reach."""
        for sink in self._sinks.values():
            sink.end()
        if not self._lost.done():
            self._lost.set_result(None)

    async def wait(self) -> int:
        """The exit status.

        Raises:
            ConnectionResetError: the connection ended before the command did.
        """
        await self._lost
        self.drop()
        if self._status is None:
            raise ConnectionResetError("the connection is lost")
        return self._status

    def send(self, number: signal.Signals) -> None:
        """Pass a signal on."""
        if self._channel and not self._lost.done():
            self._channel.send_signal(number.name.removeprefix("SIG"))

    def drop(self) -> None:
        """Leave at once; the server ends what it has started."""
        self._connection.abort()


def own_user() -> str:
    """Our login name; a uid without a passwd entry has none, and the bundled server does not ask."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return "azcp"


async def connect(peer: Peer, keys: JobKeys, timeout_s: float) -> asyncssh.SSHClientConnection:
    """A connection to a node that has proved to belong to the job, and has let us in.

    Raises:
        RefusedError: it is not the job's, or does not take the job's key.
        OSError: it cannot be reached.
        TimeoutError: nobody answered in time.
    """
    key = parse_private(keys)
    # Who holds the job's private key may sign a host key: that is all a node has to prove.
    authority = key.convert_to_public()
    # asyncssh asks for the local user's name too, which a uid without a passwd entry does not have.
    os.environ.setdefault("USER", peer.user)
    try:
        known = asyncssh.import_known_hosts(keys.known_hosts.decode("utf-8", "replace"))
    except ValueError as error:
        raise PreflightError(
            f"known_hosts in {keys.folder} cannot be used: {error}", remedy="mend it, or leave it out"
        ) from error

    def trusted(host: str, address: str, port: int | None) -> tuple[Sequence[asyncssh.SSHKey], ...]:
        keys_of_host, authorities, revoked = known.match(host, address, port)[:3]
        return keys_of_host, [authority, *authorities], revoked

    try:
        return await asyncssh.connect(
            peer.host,
            peer.port,
            username=peer.user,
            client_keys=[key],
            known_hosts=trusted,
            config=None,
            agent_path=None,
            compression_algs=None,
            preferred_auth="publickey",
            connect_timeout=timeout_s,
            login_timeout=timeout_s,
            keepalive_interval=30,
            keepalive_count_max=10,
        )
    except asyncssh.PermissionDenied as error:
        raise RefusedError(
            f"{peer.host} does not take the job's key", remedy="all nodes need the same key pair"
        ) from error
    except (asyncssh.HostKeyNotVerifiable, asyncssh.KeyExchangeFailed) as error:
        raise RefusedError(
            f"{peer.host} has a host key that the job's key has not signed",
            cause="another key pair, another server on that port, or no private key on that node",
            remedy="all nodes need the same key pair",
        ) from error
    except asyncssh.DisconnectError as error:
        raise ConnectionError(f"{peer.host} ended the connection: {error}") from error


async def start_command(peer: Peer, keys: JobKeys, command: str, stdout: Sink, stderr: Sink) -> Remote:
    """Start a command on another node; its standard input is empty.

    Raises:
        PreflightError: the node cannot be reached, or does not let us in.
    """
    channel, remote = await open_command(peer, keys, command, stdout, stderr)
    channel.write_eof()
    return remote


def signal_number(name: str) -> int:
    """The number of a signal by its name in the protocol; 0 for one that this system does not have."""
    return getattr(signal, f"SIG{name}", 0)


async def open_command(
    peer: Peer, keys: JobKeys, command: str, stdout: Sink, stderr: Sink
) -> tuple[asyncssh.SSHClientChannel[bytes], Remote]:
    """Start a command on another node; what is written to the channel is its standard input.

    Raises:
        PreflightError: the node cannot be reached, or does not let us in.
    """
    return await open_on(await _connect_with_patience(peer, keys), peer.host, command, stdout, stderr)


async def open_on(
    connection: asyncssh.SSHClientConnection, host: str, command: str, stdout: Sink, stderr: Sink
) -> tuple[asyncssh.SSHClientChannel[bytes], Remote]:
    """The same on a connection that is there already; the command's end is the connection's.

    Raises:
        PreflightError: the node does not run it.
    """
    remote = Remote(connection, stdout, stderr)
    try:
        channel, _ = await connection.create_session(
            lambda: remote, command, encoding=None, request_pty=False
        )
    except (asyncssh.ChannelOpenError, asyncssh.DisconnectError) as error:
        raise PreflightError(f"{host} does not run the command: {error}") from error
    return channel, remote


async def _connect_with_patience(peer: Peer, keys: JobKeys) -> asyncssh.SSHClientConnection:
    reason = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            await asyncio.sleep(_PAUSE_S * attempt)
        try:
            return await connect(peer, keys, CONNECT_TIMEOUT_S)
        except (OSError, TimeoutError) as error:
            reason = str(error) or "no answer in time"
    raise PreflightError(
        f"{peer.host} cannot be reached on port {peer.port}: {reason}",
        remedy="is azcp-sshd running there?",
    )
