"""azcp-ssh: runs a command on another node, as mpirun wants its remote-shell agent to.

mpirun starts one of these per node, so what it imports is counted in launch time: nothing but asyncssh.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from azcp_runtime.contract import AzcpError, UsageError
from azcp_runtime.contract.image import ENV_SSH_PORT, SSH_PORT
from azcp_runtime.launch.hosts import check_host
from azcp_runtime.launch.lines import Lines
from azcp_runtime.ssh.client import LOST, Peer, open_command, own_user
from azcp_runtime.ssh.keys import JobKeys, find_keys
from azcp_runtime.ssh.names import with_names
from azcp_runtime.ssh.state import state_dir

if TYPE_CHECKING:
    from azcp_runtime.ssh.library import asyncssh

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


def main(argv: list[str]) -> int:
    """Run it; the command's exit status, or 255 with one line that names the host."""
    request = parse_request(argv, os.environ.get(ENV_SSH_PORT, ""))
    state = state_dir(os.environ)
    keys = find_keys(os.environ, state)
    try:
        return asyncio.run(_run(request, keys))
    except AzcpError as error:
        print(f"azcp-ssh: {with_names(state, str(error))}", file=sys.stderr)
    except ConnectionResetError as error:
        print(f"azcp-ssh: {with_names(state, f'{request.host}: {error}')}", file=sys.stderr)
    return LOST


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


async def _run(request: Request, keys: JobKeys) -> int:
    peer = Peer(request.host, request.port, request.user)
    channel, remote = await open_command(peer, keys, request.command, Lines(1), Lines(2))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, remote.drop)
    if request.reads_stdin and not _is_empty_stdin():
        threading.Thread(target=_feed, args=(loop, channel), daemon=True).start()
    else:
        channel.write_eof()
    return await remote.wait()


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
