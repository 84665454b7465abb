"""The journal of one rank: what is on the disk is written down, a moment after it got there.

One thread asks the disk, then appends; a record is never older than the bytes it speaks of. It takes
its time from the disk: a slow one is asked less often.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from azcp_runtime.disk.records import Record, header, name_digest, remove, version_digest
from azcp_runtime.disk.tree import Tree, syncfs_reports_errors
from azcp_runtime.plan.ranges import Range, merged
from azcp_runtime.source.listing import Listing

_PAUSE_S: Final = 0.2
"""What a killed run has written since is fetched again; a commit of the file system's journal is about
a thousandth of it."""

_FEW: Final = 8
"""Up to so many partials an fdatasync of each is cheaper than one syncfs."""

_APPEND: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


class Journal:
    """What one rank has written.

    Args:
        path: of its own, none that another rank writes.
        tree: the destination.
        listing: the data set.
        source: what identifies the source, for ``version_digest``.
        fail: takes the error of the thread when the disk has lost bytes; the run ends.
        notice: takes one line when the journal itself cannot be written; the run goes on.
    """

    def __init__(
        self,
        path: bytes,
        tree: Tree,
        listing: Listing,
        source: bytes,
        *,
        fail: Callable[[Exception], None],
        notice: Callable[[str], None],
    ) -> None:
        self._tree = tree
        self._listing = listing
        self._source = source
        self._fail = fail
        self._notice = notice
        self._lock = threading.Lock()
        self._appending = threading.Lock()
        self._written: dict[int, list[Range]] = {}
        self._syncs_all = syncfs_reports_errors(os.uname().release)
        self._ending = threading.Event()
        self._is_synced = False
        self._descriptor = self._open(path)
        self.cpu_s = 0.0
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    def wrote(self, file: int, offset: int, length: int) -> None:
        """A range of a large file's partial has been handed to the file system."""
        with self._lock:
            self._written.setdefault(file, []).append((offset, offset + length))

    def commit(self, files: Iterable[int]) -> None:
        """The partials of these files are whole and on the disk; they are about to get their names.

        Written down before, not after: the inode is the same, and a rename that never came shows.
        """
        records = []
        for file in files:
            if state := self._tree.partial_state(file):
                records += self._records(file, state.st_ino, [(state.st_mtime_ns, state.st_mtime_ns)])
        with self._lock:
            for file in files:
                self._written.pop(file, None)
        self._append(records)

    def end(self, within_s: float | None = None) -> None:
        """Write down what is on the disk, and no more after that; wait for it no longer than told."""
        self._ending.set()
        self._thread.join(within_s)
        if self._thread.is_alive():  # the disk does not answer; the process is about to end
            return
        with self._appending:
            if self._descriptor >= 0:
                os.close(self._descriptor)
            self._descriptor = -1

    def _open(self, path: bytes) -> int:
        try:
            remove(path)
            descriptor = os.open(path, _APPEND, 0o600)
            os.write(descriptor, header(os.fstat(descriptor).st_ino))
        except OSError as error:
            self._give_up(error)
            return -1
        return descriptor

    def _work(self) -> None:
        began = time.thread_time()
        pause_s = _PAUSE_S
        try:
            while not self._ending.wait(pause_s):
                asked = time.monotonic()
                self._flush()
                pause_s = max(_PAUSE_S, time.monotonic() - asked)
            self._flush()
        except Exception as error:  # noqa: BLE001 - the main thread raises it
            self._fail(error)
        finally:
            self.cpu_s = time.thread_time() - began

    def _flush(self) -> None:
        with self._lock:
            written, self._written = self._written, {}
        if self._descriptor < 0:
            return
        records: list[Record] = []
        for file, inode in self._synced(list(written)).items():
            records += self._records(file, inode, merged(written[file]))
        self._append(records, sync=True)

    def _synced(self, files: Sequence[int]) -> Mapping[int, int]:
        """The inodes of those partials that are still there, once their bytes are on the disk."""
        if len(files) > _FEW and self._syncs_all and all(map(self._may_share, files)):
            inodes = {file: state.st_ino for file in files if (state := self._tree.partial_state(file))}
            self._tree.sync_all()
            return inodes
        synced = ((file, self._tree.sync_data(file)) for file in files)
        return {file: inode for file, inode in synced if inode is not None}

    def _may_share(self, file: int) -> bool:
        return self._tree.on_own_disk(self._tree.target(file).rpartition(b"/")[0])

    def _records(self, file: int, inode: int, ranges: Iterable[Range]) -> list[Record]:
        listing = self._listing
        version = version_digest(self._source, listing.sizes[file], listing.etags[file])
        if not version:
            return []
        name = name_digest(listing.names[file])
        return [Record(name, version, inode, start, end - start) for start, end in ranges]

    def _append(self, records: Sequence[Record], *, sync: bool = False) -> None:
        data = memoryview(b"".join(record.encoded() for record in records))
        with self._appending:
            if self._descriptor < 0:
                return
            try:
                self._is_synced = self._is_synced and not data
                while data:
                    data = data[os.write(self._descriptor, data) :]
                if sync and not self._is_synced:
                    os.fdatasync(self._descriptor)
                    self._is_synced = True
            except OSError as error:
                # Half a record may lie at the end now, and what follows it could not be read.
                os.close(self._descriptor)
                self._descriptor = -1
                self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self._notice(f"the journal cannot be written ({error.strerror}): a run that is stopped begins anew")
