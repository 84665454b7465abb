"""azcp-sshd of this image: it lets the job's key in, and neither another key, nor a password, nor nothing."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from azcp_runtime.contract.image import BIN, ENV_SSH_KEYS, ENV_STATE_DIR
from azcp_runtime.contract.selftest import Subject
from azcp_runtime.isolate import command
from azcp_runtime.selftest.answer import Answer, fail, ok
from azcp_runtime.selftest.intruder import intruder_problems
from azcp_runtime.selftest.trial import POLL_S, Surroundings, run, started, tail
from azcp_runtime.selftest.watch import Watch
from azcp_runtime.ssh.daemon import ssh_kind
from azcp_runtime.ssh.library import asyncssh

_ADDRESS: Final = "127.0.0.1"
# Below the ports that the kernel takes for the near end of a connection: a knock at one of those, where
# nobody listens yet, can meet its own socket.
_PORT: Final = 22422
_BANNER: Final = b"SSH-"  # RFC 4253, 4.2: the server speaks first
_KNOCK_S: Final = 2.0
_START_S: Final = 30.0
_COMMAND_S: Final = 60.0
_ASKED: Final = f"{BIN}/azcp-distribute --version"
# A file of a Secret has this mode, which OpenSSH by itself refuses.
_SECRET_MODE: Final = 0o644


def prove_sshd(where: Surroundings, watch: Watch) -> Answer:
    """Whether the server of this image keeps its door."""
    keys = _make_keys(where.work / "keys")
    state = where.work / "sshd"
    state.mkdir(mode=0o700)
    env = {**where.env, ENV_STATE_DIR: str(state), ENV_SSH_KEYS: str(keys)}
    inside = dataclasses.replace(where, work=state, env=env)
    if ssh_kind() == "bundled":  # OpenSSH is the base's own program, with the base's libraries
        watch.expect("azcp-sshd", 1)
    with started(command("azcp-sshd", ["--listen", _ADDRESS, "--port", str(_PORT)]), inside) as (server, log):
        if not _answers(server):
            return fail(Subject.SSHD, [f"it does not start: {tail(log)}"], "run azcp-sshd in the image")
        problems = list(_problems(where, keys, watch))
        if problems and server.poll() is not None:
            problems.append(f"azcp-sshd ended with {server.poll()} meanwhile: {tail(log)}")
    if problems:
        return fail(
            Subject.SSHD, problems, "do not use this image: any pod could start commands in its containers"
        )
    return ok(
        Subject.SSHD,
        "it starts on a high port and takes the job's key; another, a password or none it refuses",
    )


def _make_keys(folder: Path) -> Path:
    folder.mkdir()
    key = asyncssh.generate_private_key("ssh-ed25519")
    for name, content in (
        ("ssh-privatekey", key.export_private_key()),
        ("ssh-publickey", key.export_public_key()),
    ):
        (folder / name).write_bytes(content)
        (folder / name).chmod(_SECRET_MODE)
    return folder


def _answers(server: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and server.poll() is None:
        if speaks_ssh(_ADDRESS, _PORT):
            return True
        time.sleep(POLL_S)
    return False


def speaks_ssh(address: str, port: int) -> bool:
    """Whether an ssh server answers there: one that only takes the connection is none.

    Args:
        address: of the server.
        port: of the server.
    """
    try:
        with socket.create_connection((address, port), _KNOCK_S) as knock:
            knock.settimeout(_KNOCK_S)
            return knock.recv(len(_BANNER), socket.MSG_WAITALL) == _BANNER
    except (ConnectionError, TimeoutError):
        return False


def _problems(where: Surroundings, keys: Path, watch: Watch) -> Iterator[str]:
    env = {**where.env, ENV_SSH_KEYS: str(keys)}
    argv = command("azcp-ssh", ["-p", str(_PORT), _ADDRESS, _ASKED])
    ended = run(argv, dataclasses.replace(where, env=env), _COMMAND_S, watch.look)
    if ended.code != 0 or not ended.output.startswith("azcp-distribute"):
        yield f"the job's key does not start a command, azcp-ssh {ended}"
    yield from asyncio.run(intruder_problems(_ADDRESS, _PORT))
