"""Questions on the terminal: the prompt on standard error, since standard output may be a pipe."""

from __future__ import annotations

import sys

from azcp_kit.init.settle import Ask


def terminal_ask() -> Ask | None:
    """What asks, or None where standard input is no terminal."""
    return _ask if sys.stdin.isatty() else None


def _ask(prompt: str) -> str:
    sys.stderr.write(prompt)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        sys.stderr.write("\n")
        raise EOFError
    return line
