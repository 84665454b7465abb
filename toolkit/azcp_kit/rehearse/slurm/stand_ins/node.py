"""A node: starts the tasks that srun's stand-in asks it for, and ends what is left of them."""

from __future__ import annotations

import hmac
import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

from azcp_kit.rehearse.slurm.stand_ins.wire import (
    ENDED,
    ERROR,
    FOLDER,
    INPUT,
    OUTPUT,
    SIGNAL,
    TASK,
    Job,
    Line,
    read_job,
)

_PIECE_BYTES: Final = 1 << 16
_LEFT_S: Final = 5.0
NOT_FOUND: Final = 2
"""With which slurmstepd ends a task whose program is not there."""


def main(argv: Sequence[str]) -> int:
    """Serve for ever: node FOLDER HOST:PORT."""
    folder, (host, _, port) = Path(argv[0]), argv[1].rpartition(":")
    os.environ[FOLDER] = str(folder)
    with socket.create_server((host, int(port)), backlog=64) as server:
        serve(server, read_job(folder))
    return 0


def serve(server: socket.socket, job: Job) -> None:
    """Take tasks until the server is closed."""
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        threading.Thread(target=_attend, args=(Line(connection), job), daemon=True).start()


def _attend(line: Line, job: Job) -> None:
    """One task, from the order to its end."""
    frame = line.receive()
    try:
        order = json.loads(frame[1]) if frame and frame[0] == TASK else {}
        if hmac.compare_digest(str(order.get("token", "")), job.token):
            with suppress(OSError):
                _run(line, order)
    finally:
        line.close()


def _run(line: Line, order: dict[str, Any]) -> None:
    try:
        process = subprocess.Popen(  # noqa: S603 - an argument list, no shell
            order["argv"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=order["env"],
            cwd=order["cwd"] if os.path.isdir(order["cwd"]) else "/",
            start_new_session=True,
        )
    except OSError as error:
        line.send(ERROR, f"slurmstepd: error: execve(): {order['argv'][0]}: {error.strerror}\n".encode())
        line.tell(ENDED, {"code": NOT_FOUND})
        return
    pumps = [
        threading.Thread(target=_pump, args=(stream, line, kind), daemon=True)
        for stream, kind in ((process.stdout, OUTPUT), (process.stderr, ERROR))
        if stream is not None
    ]
    for thread in (*pumps, threading.Thread(target=_obey, args=(line, process), daemon=True)):
        thread.start()
    code = process.wait()
    # Slurm too ends what a task has left behind.
    _signal_all(process.pid, signal.SIGKILL)
    for thread in pumps:
        thread.join(_LEFT_S)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    line.tell(ENDED, {"code": code if code >= 0 else 128 - code})


def _pump(stream: IO[bytes], line: Line, kind: bytes) -> None:
    with suppress(OSError, ValueError):
        while piece := os.read(stream.fileno(), _PIECE_BYTES):
            line.send(kind, piece)


def _obey(line: Line, process: subprocess.Popen[bytes]) -> None:
    """Hand on standard input and signals; end the task where srun is gone."""
    stream = process.stdin
    while frame := line.receive():
        kind, content = frame
        if kind == INPUT and stream is not None:
            # A task need not read to the end.
            with suppress(OSError, ValueError):
                stream.write(content)
                stream.flush()
                if not content:
                    stream.close()
        elif kind == SIGNAL:
            _signal_all(process.pid, int(content))
    if process.poll() is None:
        _signal_all(process.pid, signal.SIGKILL)


def _signal_all(group: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)
