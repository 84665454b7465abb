"""azcp-ssh: runs a command on another node, as mpirun wants its remote-shell agent to.

mpirun starts one of these per node, so what it imports is counted in launch time: nothing but asyncssh.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import asyncssh

from azcp_runtime.contract import AzcpError, PreflightError, UsageError
from azcp_runtime.contract.image import ENV_SSH_PORT, SSH_PORT
from azcp_runtime.launch.hosts import check_host
from azcp_runtime.launch.lines import Lines
from azcp_runtime.ssh.keys import JobKeys, find_keys, parse_private
from azcp_runtime.ssh.state import state_dir

CONNECT_TIMEOUT_S: Final = 30.0
ATTEMPTS: Final = 4
_PAUSE_S: Final = 1.0
_FAILED: Final = 255
"""What ssh itself exits with when it could not run the command."""

_ENDED_BY_SIGNAL: Final = 128

_BLOCK_BYTES: Final = 1 << 16
# Of ssh(1): the letters that take a value, so that it is not taken for the host.
_VALUED: Final = frozenset("BbcDEeFIiJLlmOopQRSWw")


@dataclass(frozen=True, slots=True)
class Request:
    """One command line of azcp-ssh.

    Args:
        host: a name or an address.
        port: of the node's server.
        user: whom an OpenSSH server would let in; the bundled one does not ask.
        command: one string, as the remote shell would read it.
        reads_stdin: whether standard input goes to the command.
    """

    host: str
    port: int
    user: str
    command: str
    reads_stdin: bool


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
        self._status = _FAILED
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
        """The exit status; 255 where the connection ended before the command."""
        await self._lost
        self.drop()
        return self._status

    def send(self, number: signal.Signals) -> None:
        """Pass a signal on."""
        if self._channel and not self._lost.done():
            self._channel.send_signal(number.name.removeprefix("SIG"))

    def drop(self) -> None:
        """Leave at once; the server ends what it has started."""
        self._connection.abort()


def main(argv: list[str]) -> int:
    """Run it; the command's exit status, or 255 with one line that names the host."""
    request = parse_request(argv, os.environ.get(ENV_SSH_PORT, ""))
    keys = find_keys(os.environ, state_dir(os.environ))
    try:
        return asyncio.run(_run(request, keys))
    except AzcpError as error:
        print(f"azcp-ssh: {error}", file=sys.stderr)
        return _FAILED


def parse_request(argv: list[str], port: str) -> Request:
    """A command line as mpirun and its operators write it; of the options only the port has a meaning.

    Raises:
        UsageError: no host, no command, or a port that is none.
    """
    words, is_silent, user = list(argv), False, ""
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option == "--":
            break
        letter = next((c for c in option[1:] if c in _VALUED), "")
        value = option.partition(letter)[2] if letter else ""
        if letter and not value:
            value = words.pop(0) if words else ""
        port = _port_of(letter, value) or port
        user = value if letter == "l" else user
        is_silent = is_silent or (not letter and "n" in option)
    if not words:
        raise UsageError("azcp-ssh needs a host", remedy="azcp-ssh HOST COMMAND")
    name, _, host = words.pop(0).rpartition("@")
    if not words:
        raise UsageError("azcp-ssh runs commands only", remedy="azcp-ssh HOST COMMAND")
    if port and not port.isdecimal():
        raise UsageError(f"{port!r} is no port", remedy=f"set {ENV_SSH_PORT} to a number")
    user = name or user or own_user()
    return Request(check_host(host), int(port or SSH_PORT), user, " ".join(words), not is_silent)


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
    known = asyncssh.import_known_hosts(keys.known_hosts.decode("utf-8", "replace"))

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
    channel, remote = await _open(peer, keys, command, stdout, stderr)
    channel.write_eof()
    return remote


def signal_number(name: str) -> int:
    """The number of a signal by its name in the protocol; 0 for one that this system does not have."""
    return getattr(signal, f"SIG{name}", 0)


async def _run(request: Request, keys: JobKeys) -> int:
    peer = Peer(request.host, request.port, request.user)
    channel, remote = await _open(peer, keys, request.command, Lines(1), Lines(2))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, remote.drop)
    if request.reads_stdin and not _is_empty_stdin():
        threading.Thread(target=_feed, args=(loop, channel), daemon=True).start()
    else:
        channel.write_eof()
    return await remote.wait()


async def _open(
    peer: Peer, keys: JobKeys, command: str, stdout: Sink, stderr: Sink
) -> tuple[asyncssh.SSHClientChannel[bytes], Remote]:
    connection = await _connect_with_patience(peer, keys)
    remote = Remote(connection, stdout, stderr)
    try:
        channel, _ = await connection.create_session(
            lambda: remote, command, encoding=None, request_pty=False
        )
    except (asyncssh.ChannelOpenError, asyncssh.DisconnectError) as error:
        raise PreflightError(f"{peer.host} does not run the command: {error}") from error
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


def _is_empty_stdin() -> bool:
    try:
        found, nothing = os.fstat(0), os.stat(os.devnull)
    except OSError:
        return True
    return found.st_rdev == nothing.st_rdev and found.st_rdev != 0


def _feed(loop: asyncio.AbstractEventLoop, channel: asyncssh.SSHClientChannel[bytes]) -> None:
    while block := os.read(0, _BLOCK_BYTES):
        loop.call_soon_threadsafe(channel.write, block)
    loop.call_soon_threadsafe(channel.write_eof)


def _port_of(letter: str, value: str) -> str:
    if letter == "p":
        return value
    name, _, number = value.replace(" ", "=", 1).partition("=")
    return number.strip() if letter == "o" and name.strip().lower() == "port" else ""
