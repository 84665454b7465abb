"""azcp-hold: stays until it is told to end, to keep a DaemonSet's pod in place once the node has the data."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import NoReturn


def main() -> NoReturn:
    """Wait for a signal that ends, and end with 0."""
    # Process 1 of a container gets no signal that it has no handler for.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _end)
    while True:
        signal.pause()


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(0)
