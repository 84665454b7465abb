"""The files of a destination while they are written: partial names, sizes, O_DIRECT, commit.

A file is written as a partial beside its target and renamed when every byte is on the disk, so that
a name never stands for less than the whole file, whenever the process is killed.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import os
import re
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from azcp_runtime.contract import PARTIAL_PREFIX, WriteError
from azcp_runtime.plan.chunks import ALIGN, aligned
from azcp_runtime.source.names import local_path, shown

_libc: Final = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
_TMPFS: Final = 0x01021994
_NOT_SUPPORTED: Final = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
_PREFIX: Final = PARTIAL_PREFIX.encode()
_LONGEST_PREFIXED: Final = 200
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


def syncfs_reports_errors(release: str) -> bool:
    """Whether syncfs tells of failed write-back: since Linux 5.8 (syncfs(2), errors)."""
    match = re.match(r"(\d+)\.(\d+)", release)
    return match is not None and (int(match[1]), int(match[2])) >= (5, 8)


def partial_path(target: bytes) -> bytes:
    """Where a file is written until it is whole: beside it, and the same for every run.

    A name too long for the prefix is replaced by its digest, padded to a length that no short name
    reaches, so that no two files ever share a partial.
    """
    folder, slash, name = target.rpartition(b"/")
    if len(name) > _LONGEST_PREFIXED:
        digest = hashlib.blake2b(name, digest_size=16).hexdigest().encode()
        name = digest.ljust(_LONGEST_PREFIXED + 1, b"-")
    return folder + slash + _PREFIX + name


class Tree:
    """A destination folder.

    Args:
        root: the folder.
        names: the listing's names.
        sizes: the listing's sizes.
        direct: whether O_DIRECT works there; see ``disk.probe``.
        notice: takes one line when O_DIRECT turns out not to work after all.
    """

    def __init__(
        self,
        root: Path,
        names: Sequence[bytes],
        sizes: Sequence[int],
        *,
        direct: bool,
        notice: Callable[[str], None],
    ) -> None:
        self._root = os.path.join(os.fsencode(root), b"")
        self._names = names
        self._sizes = sizes
        self._notice = notice
        self._made = {self._root[:-1]}
        self._lock = threading.Lock()
        self._folder = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._device = os.fstat(self._folder).st_dev
        self._reserves = _file_system(self._root) != _TMPFS
        self.direct = direct

    def close(self) -> None:
        """No file is written any more."""
        os.close(self._folder)

    def target(self, file: int) -> bytes:
        """The final path of a file."""
        return self._root + local_path(self._names[file])

    def is_empty(self, file: int) -> bool:
        """Whether a file has no bytes, so that nothing brings it."""
        return not self._sizes[file]

    def open_partial(self, file: int, *, direct: bool) -> int:
        """Open a file's partial at its full size, made with its folders where needed.

        Raises:
            WriteError: the disk is full, read-only, or something else is in the way.
        """
        path = partial_path(self.target(file))
        self._make_folder(path.rpartition(b"/")[0])
        try:
            descriptor = _opened(path, direct=direct)
            try:
                _reserve(descriptor, self._sizes[file], blocks=self._reserves)
            except OSError:
                os.close(descriptor)
                raise
        except OSError as error:
            raise self.failure(file, error) from error
        return descriptor

    def write(self, file: int, descriptor: int, data: memoryview, offset: int, *, direct: bool) -> None:
        """Write bytes of a large file; a direct write is padded to ALIGN, which the slot has room for."""
        done, gave_up = 0, False
        while done < len(data):
            try:
                done += os.pwrite(descriptor, data[done:], offset + done)
            except OSError as error:
                # A link or a mount below the destination may lead to a file system of another kind.
                if error.errno != errno.EINVAL or gave_up:
                    raise self.failure(file, error) from error
                self._give_up_direct(descriptor)
                gave_up, direct = True, False
            if direct and done < len(data) and done % ALIGN:
                done -= done % ALIGN  # a short direct write ends anywhere; the next must start aligned

    def write_whole(self, file: int, data: memoryview) -> None:
        """Write a small file in one go, into a partial made anew."""
        path = partial_path(self.target(file))
        self._make_folder(path.rpartition(b"/")[0])
        try:
            descriptor = _created(path)
            try:
                while data:
                    data = data[os.write(descriptor, data) :]
            finally:
                os.close(descriptor)
        except OSError as error:
            raise self.failure(file, error) from error

    def cut_padding(self, file: int) -> None:
        """Cut off what a direct write added behind the end."""
        try:
            if self._sizes[file] % ALIGN:
                os.truncate(partial_path(self.target(file)), self._sizes[file])
        except OSError as error:
            raise self.failure(file, error) from error

    def sync_file(self, file: int) -> None:
        """Wait until a partial's bytes are on the disk, and drop them from the page cache."""
        try:
            descriptor = os.open(partial_path(self.target(file)), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise self.failure(file, error) from error

    def sync_data(self, file: int) -> int | None:
        """Wait until what is written of a partial is on the disk; its inode, None where it has its name."""
        try:
            descriptor = os.open(partial_path(self.target(file)), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                os.fdatasync(descriptor)
                return os.fstat(descriptor).st_ino
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self.failure(file, error) from error

    def partial_state(self, file: int) -> os.stat_result | None:
        """What the file system says of a partial; None where there is none."""
        try:
            return os.lstat(partial_path(self.target(file)))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self.failure(file, error) from error

    def sync_all(self) -> None:
        """Wait until everything written to the destination's file system is on the disk."""
        # The descriptor is as old as the run: errors of write-back since then are reported on it.
        if _libc.syncfs(self._folder):
            number = ctypes.get_errno()
            raise WriteError(f"{shown(self._root)}: {os.strerror(number)}", remedy="check the disk")

    def publish(self, file: int) -> None:
        """Give a whole file its name."""
        target = self.target(file)
        try:
            os.rename(partial_path(target), target)
        except OSError as error:
            raise self.failure(file, error) from error

    def folders_above(self, file: int) -> Iterator[bytes]:
        """Every folder from a file's own up to the destination."""
        folder = self.target(file).rpartition(b"/")[0]
        while len(folder) > len(self._root) - 1:
            yield folder
            folder = folder.rpartition(b"/")[0]
        yield self._root

    def on_own_disk(self, folder: bytes) -> bool:
        """Whether a folder lies on the destination's file system, not behind a link or a mount below it."""
        return os.stat(folder).st_dev == self._device

    def failure(self, file: int, error: OSError) -> WriteError:
        """What went wrong with one file, and what to do."""
        remedies = {
            errno.ENOSPC: "free space there, or choose a larger disk",
            errno.EDQUOT: "raise the quota",
            errno.EROFS: "mount it writable",
            errno.EACCES: "the user of this process must be able to write there",
            errno.EIO: "check the disk",
        }
        what = f"cannot write {shown(self.target(file))}: {error.strerror}"
        return WriteError(what, remedy=remedies.get(error.errno or 0, ""))

    def _give_up_direct(self, descriptor: int) -> None:
        flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags & ~os.O_DIRECT)
        with self._lock:  # several writers find it out at the same time
            was_direct, self.direct = self.direct, False
        if was_direct:
            self._notice("O_DIRECT does not work on all of the destination: writing through the page cache")

    def _make_folder(self, folder: bytes) -> None:
        if folder in self._made:
            return
        # One after the other: os.makedirs calls itself for each, and a path may have a thousand.
        at = len(self._root) - 1
        while at < len(folder):
            at = folder.find(b"/", at + 1)
            at = len(folder) if at < 0 else at
            try:
                os.mkdir(folder[:at])
            except FileExistsError:
                continue
            except OSError as error:
                raise WriteError(f"cannot make the folder {shown(folder[:at])}: {error.strerror}") from error
        with self._lock:
            self._made.add(folder)


def _opened(path: bytes, *, direct: bool) -> int:
    """A partial that may be there already: of an earlier run, or of another rank of this node."""
    flags = _CREATE | os.O_NONBLOCK | (os.O_DIRECT if direct else 0)
    try:
        descriptor = os.open(path, flags, 0o666)
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
            return descriptor
        os.close(descriptor)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise
    # A link, a device, a pipe, or another name of a file that lies elsewhere: never write into that.
    os.unlink(path)
    return os.open(path, flags | os.O_EXCL, 0o666)


def _created(path: bytes) -> int:
    """A partial that nobody else writes: whatever has its name goes first."""
    try:
        return os.open(path, _CREATE | os.O_EXCL, 0o666)
    except FileExistsError:
        os.unlink(path)
        return os.open(path, _CREATE | os.O_EXCL, 0o666)


def _file_system(path: bytes) -> int:
    """The magic number of a file system (statfs(2): f_type, the first word)."""
    buffer = ctypes.create_string_buffer(256)
    if _libc.statfs(path, buffer):
        raise WriteError(f"{shown(path)}: {os.strerror(ctypes.get_errno())}")
    return ctypes.c_long.from_buffer(buffer).value


def _reserve(descriptor: int, size: int, *, blocks: bool) -> None:
    """Give a partial its size and its blocks; a partial of an earlier run keeps what it has.

    On tmpfs only its size: there a block is memory, which the kernel would clear first, at 3 GB/s.
    """
    if os.fstat(descriptor).st_size > aligned(size):
        os.ftruncate(descriptor, size)
    if not blocks:
        os.ftruncate(descriptor, size)
    elif size and _libc.fallocate(descriptor, 0, 0, size):
        number = ctypes.get_errno()
        if number not in _NOT_SUPPORTED:
            raise OSError(number, os.strerror(number))
        # glibc's posix_fallocate would write a byte into every block instead.
        os.ftruncate(descriptor, size)
