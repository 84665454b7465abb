"""Runs one program of an image, by itself: no network, a read-only root, bounded in all that it can use."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from azcp_runtime.contract import PreflightError

from azcp_kit.engine import Engine, errors_told

LABEL: Final = "io.azcp.verify"
HOST_NAME: Final = "azcp-verify"
"""The same in every container, since programs tell it."""

_MEMORY_BYTES: Final = 2**30
_PROCESSES: Final = 512
_POLL_S: Final = 0.05
_OUTPUT: Final = {"type": "json-file", "config": {"max-size": "4m", "max-file": "1"}}
"""What a program says beyond that is dropped by the engine, whatever its own settings are."""


@dataclass(frozen=True, slots=True)
class Program:
    """What to run.

    Args:
        argv: the program itself first, by its path; neither the image's entrypoint nor a shell is used.
        user: as USER writes it; empty for the image's own.
        env: beside the image's own.
        tmpfs: the one writable folder, and its mount options.
        limit_s: after that it is ended.
    """

    argv: tuple[str, ...]
    user: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    tmpfs: Mapping[str, str] = field(default_factory=dict)
    limit_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended.

    Args:
        status: its exit status; None where it was not started or had to be ended.
        stdout, stderr: the last that it said there.
        problem: why there is no status; and whether the engine ended it for its memory.
    """

    status: int | None
    stdout: bytes
    stderr: bytes
    problem: str = ""


def run(engine: Engine, image_id: str, program: Program) -> Ended:
    """Run it to its end; the container is removed whatever happens, a signal included.

    Raises:
        PreflightError: the engine failed.
    """
    # Named beforehand: a signal between the engine's making it and its answer leaves nothing behind.
    name = f"azcp-verify-{secrets.token_hex(8)}"
    try:
        with errors_told("no container can be made of the image"):
            _create(engine, image_id, name, program)
        try:
            with errors_told("it cannot be started"):
                engine.client.api.start(name)
        except PreflightError as error:
            return Ended(None, b"", b"", str(error))
        with errors_told("the engine lost a container"):
            problem, status = _wait(engine, name, program.limit_s)
            return Ended(status, _said(engine, name, stdout=True), _said(engine, name, stdout=False), problem)
    finally:
        engine.remove(name)


def _create(engine: Engine, image_id: str, name: str, program: Program) -> None:
    api = engine.client.api
    is_root = program.user.partition(":")[0] in ("root", "0")
    api.create_container(
        image_id,
        name=name,
        hostname=HOST_NAME,
        entrypoint=list(program.argv),
        command=[],
        user=program.user or None,
        environment=dict(program.env),
        # The base's own would run beside us.
        healthcheck={"test": ["NONE"]},
        labels={LABEL: "true"},
        host_config=api.create_host_config(
            network_mode="none",
            read_only=True,
            tmpfs=dict(program.tmpfs),
            mem_limit=_MEMORY_BYTES,
            memswap_limit=_MEMORY_BYTES,
            pids_limit=_PROCESSES,
            cap_drop=None if is_root else ["ALL"],
            security_opt=["no-new-privileges"],
            log_config=_OUTPUT,  # type: ignore[arg-type]  # docker-py takes a dict too
        ),
    )


def _wait(engine: Engine, name: str, limit_s: float) -> tuple[str, int | None]:
    deadline = time.monotonic() + limit_s
    while True:
        state = engine.client.api.inspect_container(name)["State"]
        if not state["Running"]:
            return ("it ran out of memory" if state.get("OOMKilled") else ""), int(state["ExitCode"])
        if time.monotonic() > deadline:
            return f"it did not end within {limit_s:.0f} s", None
        time.sleep(_POLL_S)


def _said(engine: Engine, name: str, *, stdout: bool) -> bytes:
    said: bytes = engine.client.api.logs(name, stdout=stdout, stderr=not stdout)
    return said
