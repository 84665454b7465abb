"""azcp-sshd and azcp-ssh of the checkout, as processes of their own."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import asyncssh

from tests.lab.waiting import wait_until

LOCAL: Final = "127.0.0.1"
DEADLINE_S: Final = 20.0
_SERVE: Final = "import sys; from azcp_runtime.ssh.daemon import main; sys.exit(main(sys.argv[1:]))"
_CALL: Final = "import sys; from azcp_runtime.ssh.agent import main; sys.exit(main(sys.argv[1:]))"


@dataclass(frozen=True)
class Node:
    """A node's ssh server that runs here."""

    process: subprocess.Popen[bytes]
    port: int
    keys: Path
    state: Path
    log_file: Path

    @property
    def log(self) -> str:
        """What it has said so far."""
        return self.log_file.read_text(encoding="utf-8")

    def says(self, pattern: str) -> bool:
        """Whether it has said something like that."""
        return re.search(pattern, self.log) is not None


def make_keys(folder: Path, algorithm: str = "ssh-ed25519") -> Path:
    """A job's key pair as a Secret mounts it: files that everybody may read."""
    folder.mkdir(parents=True)
    key = asyncssh.generate_private_key(algorithm)
    for name, content in (
        ("ssh-privatekey", key.export_private_key()),
        ("ssh-publickey", key.export_public_key()),
    ):
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o644)
    return folder


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server((LOCAL, 0)) as free:
        return int(free.getsockname()[1])


@contextmanager
def node(
    folder: Path,
    keys: Path,
    env: Mapping[str, str] | None = None,
    *,
    address: str = LOCAL,
    port: int | None = None,
) -> Iterator[Node]:
    """An azcp-sshd that answers, with nothing in its environment but what is named."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port() if port is None else port
    state = folder / "state"
    own = {"PATH": os.environ["PATH"], "AZCP_STATE_DIR": str(state), "AZCP_SSH_KEYS": str(keys)}
    log_file = folder / "log"
    argv = [sys.executable, "-c", _SERVE, "--port", str(port), "--listen", address]
    with (
        log_file.open("wb") as log,
        subprocess.Popen(argv, env={**own, **(env or {})}, stderr=log) as process,
    ):
        running = Node(process, port, keys, state, log_file)
        try:
            wait_until(
                lambda: running.says("listening") or process.poll() is not None, DEADLINE_S, "it listens"
            )
            yield running
        finally:
            process.kill()


def call(
    there: Node, *words: str, keys: Path | None = None, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """azcp-ssh to a node, to its end."""
    return subprocess.run(
        [sys.executable, "-c", _CALL, *words],
        env=caller_environment(there, keys),
        input=stdin,
        capture_output=True,
        check=False,
        timeout=DEADLINE_S,
    )


def calling(there: Node, *words: str) -> subprocess.Popen[bytes]:
    """azcp-ssh to a node, started."""
    argv = [sys.executable, "-c", _CALL, *words]
    return subprocess.Popen(
        argv, env=caller_environment(there), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )


def caller_environment(there: Node, keys: Path | None = None) -> dict[str, str]:
    """What azcp-ssh runs in on another node of the same job."""
    return {
        "PATH": os.environ["PATH"],
        "AZCP_SSH_PORT": str(there.port),
        "AZCP_STATE_DIR": str(there.state.parent / "caller"),
        "AZCP_SSH_KEYS": str(keys or there.keys),
    }
