"""Commits: a file gets its name only when its bytes are on the disk.

One thread takes whole files as they come, many at a time: a batch of small files shares one
syncfs, which is a hundred times cheaper than an fsync each and promises the same.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Final

from azcp_runtime.contract import WriteError
from azcp_runtime.disk.journal import Journal
from azcp_runtime.disk.tree import Tree, syncfs_reports_errors
from azcp_runtime.source.names import shown

_GATHER_S: Final = 0.5
"""How long small files wait for company: each syncfs costs a commit of the journal."""

_FEW: Final = 8
"""Up to so many files an fsync of each is cheaper than one of the whole file system."""


class Committer:
    """The committing thread of one rank.

    Args:
        tree: the destination.
        fail: takes the error of the thread; the run ends.
        journal: told of each file before it gets its name.
    """

    def __init__(self, tree: Tree, fail: Callable[[Exception], None], journal: Journal | None = None) -> None:
        self._tree = tree
        self._journal = journal
        self._fail = fail
        self._files: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._folders: set[bytes] = set()
        self._shares: dict[bytes, bool] = {}
        self._thread = threading.Thread(target=self._work, name="commit", daemon=True)
        self._syncs_all = syncfs_reports_errors(os.uname().release)
        self.committed = 0
        self.cpu_s = 0.0
        self._thread.start()

    def add(self, file: int) -> None:
        """Every byte of a file's partial is written; one of no bytes is made here."""
        self._files.put(file)

    def close(self) -> None:
        """No more files come; ``finished`` tells when all have their names."""
        self._files.put(None)

    def finished(self) -> bool:
        """Whether all files added before ``close`` are on the disk under their names."""
        return not self._thread.is_alive()

    def _work(self) -> None:
        began = time.thread_time()
        try:
            is_open = True
            while is_open:
                batch, is_open = self._gather()
                self._commit(batch)
            self._sync_folders()
        except Exception as error:  # noqa: BLE001 - the main thread raises it
            self._fail(error)
        finally:
            self.cpu_s = time.thread_time() - began

    def _gather(self) -> tuple[list[int], bool]:
        """What comes within a moment of the first file, and whether more may come."""
        batch: list[int] = []
        until = float("inf")
        while (left := until - time.monotonic()) > 0:
            try:
                file = self._files.get(timeout=None if not batch else left)
            except queue.Empty:
                break
            if file is None:
                return batch, False
            if not batch:
                until = time.monotonic() + _GATHER_S
            batch.append(file)
        return batch, True

    def _commit(self, batch: list[int]) -> None:
        for file in batch:
            if self._tree.is_empty(file):
                self._tree.write_whole(file, memoryview(b""))
        together = [file for file in batch if self._may_share(self._folder_of(file))]
        if len(together) > _FEW:
            self._tree.sync_all()
        else:
            together = []
        for file in batch if not together else sorted(set(batch) - set(together)):
            self._tree.sync_file(file)
        if self._journal:
            self._journal.commit(batch)
        for file in batch:
            self._tree.publish(file)
            self._folders.update(self._tree.folders_above(file))
        self.committed += len(batch)

    def _folder_of(self, file: int) -> bytes:
        return self._tree.target(file).rpartition(b"/")[0]

    def _may_share(self, folder: bytes) -> bool:
        """Whether one syncfs of the destination speaks for what lies in a folder."""
        if folder not in self._shares:
            self._shares[folder] = self._syncs_all and self._tree.on_own_disk(folder)
        return self._shares[folder]

    def _sync_folders(self) -> None:
        """Make the names durable; until then a crash leaves partials, never halves."""
        together = [folder for folder in self._folders if self._may_share(folder)]
        if len(together) > _FEW:
            self._tree.sync_all()
            self._folders.difference_update(together)
        for folder in self._folders:
            try:
                descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
            except OSError as error:
                raise WriteError(f"cannot sync the folder {shown(folder)}: {error.strerror}") from error
