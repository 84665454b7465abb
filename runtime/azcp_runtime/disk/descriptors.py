"""Open partial files: each opened once, shared by the writers, closed when idle ones are too many."""

from __future__ import annotations

import os
import resource
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from azcp_runtime.disk.tree import Tree

_KEPT_FOR_OTHERS: Final = 512
"""Descriptors left to connections, MPI and Python."""


class Descriptors:
    """A cache of descriptors of large files, least recently used first."""

    def __init__(self, tree: Tree, most: int | None = None) -> None:
        self._tree = tree
        self._most = most or _raised_limit()
        self._open: OrderedDict[int, int] = OrderedDict()
        self._users: dict[int, int] = {}
        self._lock = threading.Lock()

    @contextmanager
    def use(self, file: int) -> Iterator[int]:
        """The descriptor of a file's partial, for the length of a write."""
        with self._lock:
            if file not in self._open:
                self._close_idle(self._most - 1)
                self._open[file] = self._tree.open_partial(file, direct=self._tree.direct)
            self._open.move_to_end(file)
            self._users[file] = self._users.get(file, 0) + 1
            descriptor = self._open[file]
        try:
            yield descriptor
        finally:
            with self._lock:
                self._users[file] -= 1

    def finish(self, file: int) -> None:
        """The last byte of a file is written: close it and cut its padding."""
        with self._lock:
            descriptor = self._open.pop(file, None)
            self._users.pop(file, None)
        if descriptor is not None:  # None: closed when others needed the place
            os.close(descriptor)
        self._tree.cut_padding(file)

    def _close_idle(self, most: int) -> None:
        for file in list(self._open):
            if len(self._open) <= most:
                return
            if not self._users.get(file):
                os.close(self._open.pop(file))


def _raised_limit() -> int:
    """How many files may be open, after the soft limit was raised to the hard one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 1 << 20 if hard == resource.RLIM_INFINITY else min(hard, 1 << 20)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return max(16, most - _KEPT_FOR_OTHERS)
