"""Processes found by what they carry in their environment, whoever their parent is by now."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def processes_with(variable: str, value: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Id and environment of each process whose environment says variable=value; zombies have none."""
    for entry in Path("/proc").iterdir():
        environ = _environ(entry) if entry.name.isdecimal() else {}
        if environ.get(variable) == value:
            yield int(entry.name), environ


def command_line(pid: int) -> str:
    """What ps shows of it; empty once it has ended."""
    return _read(Path("/proc", str(pid), "cmdline")).replace("\0", " ")


def kill(pid: int | None, number: signal.Signals = signal.SIGKILL) -> None:
    """Send the signal; nothing where there is nobody any more."""
    if pid is None:
        return
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return  # it was faster


def _environ(process: Path) -> dict[str, str]:
    pairs = (item.partition("=") for item in _read(process / "environ").split("\0"))
    return {name: value for name, _, value in pairs}


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="backslashreplace")
    except (FileNotFoundError, PermissionError, ProcessLookupError):
        return ""  # it ended while we looked, or it is somebody else's
