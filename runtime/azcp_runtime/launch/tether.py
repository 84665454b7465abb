"""azcp-tether: what the leader's session runs on a member's node, a line between the two and nothing else.

Where the session ends, however it ends, so does this process, and the member knows at once.
"""

from __future__ import annotations

import os
import selectors
import socket
from pathlib import Path
from typing import Final

from azcp_runtime.contract import PreflightError
from azcp_runtime.launch.lines import write_all
from azcp_runtime.launch.words import socket_path
from azcp_runtime.ssh.state import state_dir

_BLOCK_BYTES: Final = 4096


def main() -> int:
    """Until either side has ended."""
    with connected(state_dir(os.environ)) as member:
        relay(member)
    return 0


def connected(state: Path) -> socket.socket:
    """A connection to this node's member.

    Raises:
        PreflightError: there is none.
    """
    member = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with socket_path(state) as path:
            member.connect(path)
    except OSError as error:
        member.close()
        raise PreflightError(
            "azcp-launch does not serve here",
            cause=error.strerror or str(error),
            remedy="every node of the job runs azcp-launch with --every-node, none of them azcp-sshd",
        ) from error
    return member


def relay(member: socket.socket) -> None:
    """Standard input to the member, the member's words to standard output."""
    with selectors.DefaultSelector() as selector:
        selector.register(0, selectors.EVENT_READ)
        selector.register(member, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd == 0:
                    data = os.read(0, _BLOCK_BYTES)
                    member.sendall(data)
                else:
                    data = member.recv(_BLOCK_BYTES)
                    write_all(1, data)
                if not data:
                    return
