"""The batch script on the first of the nodes, over the same connection that srun's stand-in has to them."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Mapping
from queue import Empty, SimpleQueue
from typing import Any, Final

from azcp_runtime.contract import PreflightError

from azcp_kit.rehearse.slurm.said import Said
from azcp_kit.rehearse.slurm.stand_ins.wire import ENDED, INPUT, TASK, Line

_LISTENER_S: Final = 5.0
_UP_S: Final = 20.0
_POLL_S: Final = 0.1


def wait_until_up(name: str, address: tuple[str, int]) -> None:
    """Wait until a node takes tasks: Slurm gives a job none that does not.

    Raises:
        PreflightError: it does not answer in time.
    """
    _connected(name, address).close()


def run_order(
    name: str, address: tuple[str, int], order: Mapping[str, Any], said: Said, timeout_s: float
) -> int | None:
    """Have a node run what is ordered, to its end; its code, or None where it took too long.

    Raises:
        PreflightError: the node does not answer, or is gone.
    """
    line = Line(_connected(name, address))
    frames: SimpleQueue[tuple[bytes, bytes] | None] = SimpleQueue()
    listener = threading.Thread(target=_listen, args=(line, frames), daemon=True)
    listener.start()
    try:
        line.tell(TASK, order)
        # As a batch script's, its standard input is empty.
        line.send(INPUT)
        return _take(name, frames, said, time.monotonic() + timeout_s)
    finally:
        line.close()
        listener.join(_LISTENER_S)


def _connected(name: str, address: tuple[str, int]) -> socket.socket:
    """A connection to a node that may still be starting.

    Raises:
        PreflightError: it does not answer in time.
    """
    until = time.monotonic() + _UP_S
    while True:
        try:
            connection = socket.create_connection(address, _UP_S)
        except OSError as error:
            if time.monotonic() > until:
                raise PreflightError(
                    f"{name} does not answer",
                    cause=str(error.strerror or error),
                    remedy="rehearse where the engine's containers can be reached from this machine",
                ) from error
            time.sleep(_POLL_S)
        else:
            connection.settimeout(None)
            return connection


def _listen(line: Line, frames: SimpleQueue[tuple[bytes, bytes] | None]) -> None:
    while frame := line.receive():
        frames.put(frame)
    frames.put(None)


def _take(name: str, frames: SimpleQueue[tuple[bytes, bytes] | None], said: Said, until: float) -> int | None:
    """Hand on what comes; the script's code, or None where it did not end in time.

    Raises:
        PreflightError: the node is gone.
    """
    while True:
        try:
            frame = frames.get(timeout=max(0.0, until - time.monotonic()))
        except Empty:
            return None
        if frame is None:
            raise PreflightError(f"the engine has lost {name}")
        kind, content = frame
        if kind == ENDED:
            said.end()
            return int(json.loads(content)["code"])
        said.take(content)
