"""Output of many nodes to one descriptor, whole lines at a time."""

from __future__ import annotations

import os
from typing import Final

_LONGEST_BYTES: Final = 1 << 16
"""A longer line is passed on in pieces: a progress bar without line ends must be seen too."""


class Lines:
    """One node's stream.

    Args:
        descriptor: where it goes. It is written as it is: others share it, so it must keep blocking.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Pass on what is whole; a carriage return ends a line as well."""
        text = self._rest + data
        cut = 1 + max(text.rfind(b"\n"), text.rfind(b"\r"))
        if len(text) - cut > _LONGEST_BYTES:
            cut = len(text)
        self._rest = text[cut:]
        write_all(self._descriptor, text[:cut])

    def end(self) -> None:
        """Pass on the rest."""
        write_all(self._descriptor, self._rest)
        self._rest = b""


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of it; nothing where nobody reads any more."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BrokenPipeError:
            return
