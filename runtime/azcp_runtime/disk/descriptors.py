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


class _Open:
    """One partial: its descriptor once it is open, and how many writers use it."""

    def __init__(self) -> None:
        self.opening = threading.Lock()
        self.descriptor = -1
        self.users = 0


class Descriptors:
    """A cache of descriptors of large files, least recently used first."""

    def __init__(self, tree: Tree, most: int | None = None) -> None:
        self._tree = tree
        self._most = most or _raised_limit()
        self._files: OrderedDict[int, _Open] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def use(self, file: int) -> Iterator[int]:
        """The descriptor of a file's partial, for the length of a write."""
        with self._lock:
            if file not in self._files:
                self._close_idle(self._most - 1)
                self._files[file] = _Open()
            entry = self._files[file]
            self._files.move_to_end(file)
            entry.users += 1
        try:
            # Reserving the blocks of a large file takes a while; other files need not wait for it.
            with entry.opening:
                if entry.descriptor < 0:
                    entry.descriptor = self._tree.open_partial(file, direct=self._tree.direct)
            yield entry.descriptor
        finally:
            with self._lock:
                entry.users -= 1

    def finish(self, file: int) -> None:
        """The last byte of a file is written: close it and cut its padding."""
        with self._lock:
            entry = self._files.pop(file, None)
        if entry is not None:  # None: closed when others needed the place
            os.close(entry.descriptor)
        self._tree.cut_padding(file)

    def _close_idle(self, most: int) -> None:
        for file, entry in list(self._files.items()):
            if len(self._files) <= most:
                return
            if not entry.users and entry.descriptor >= 0:
                os.close(entry.descriptor)
                del self._files[file]


def _raised_limit() -> int:
    """How many files may be open, after the soft limit was raised to the hard one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 1 << 20 if hard == resource.RLIM_INFINITY else min(hard, 1 << 20)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return max(16, most - _KEPT_FOR_OTHERS)
