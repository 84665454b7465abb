"""Files of a container that was never started, through the engine's archive calls: nothing of it is run.

A HEAD tells what a path is, a GET sends it as a tar stream. Both see the image's layers as the engine joins
them, so an image of 20 GB costs no more than a small one.
"""

from __future__ import annotations

import base64
import io
import json
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from azcp_runtime.contract import PreflightError

from azcp_kit.inspect.files import Entry, Kind
from azcp_kit.shown import shown

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer
    from requests import Response, Session

STAT_HEADER: Final = "X-Docker-Container-Path-Stat"
FOLDER_LIMIT_BYTES: Final = 16 * 2**20
"""A folder is sent with all that is in it; RDMA providers, the largest asked for, are 2 MB."""
_TAR_HEADERS_BYTES: Final = 2**20
"""More than the headers before a file take, and the block that tarfile reads at once."""

_PIECE_BYTES: Final = 2**20

# Go's os.FileMode, which is what the engine sends, keeps the type in the high bits.
_GO_DIR: Final = 1 << 31
_GO_LINK: Final = 1 << 27
_GO_TYPE: Final = _GO_DIR | _GO_LINK | 1 << 26 | 1 << 25 | 1 << 24 | 1 << 21 | 1 << 19
# Offered gzip, the engine compresses what goes over a local socket.
_AS_IT_IS: Final = MappingProxyType({"Accept-Encoding": "identity"})
_EXECUTABLE: Final = 0o111
_CIRCLES: Final = ("too many links", "too many levels of symbolic links")
_NOT_FOUND: Final = 404
_ERROR: Final = 400


class ContainerFiles:
    """The files of one container; an `ImageFiles`."""

    def __init__(self, session: Session, address: str, timeout_s: float) -> None:
        self._session = session
        self._address = address
        self._timeout_s = timeout_s

    def entry(self, path: str) -> Entry | None:
        """What is there, a link not followed."""
        answer = self._session.head(self._address, params={"path": path}, timeout=self._timeout_s)
        with closing(answer):
            if answer.status_code == _NOT_FOUND or (answer.status_code >= _ERROR and self._is_circle(path)):
                return None
            _expect_success(answer, path)
            return parse_stat(answer.headers.get(STAT_HEADER, ""))

    def read(self, path: str, limit_bytes: int) -> bytes:
        """The first bytes of a regular file."""
        with self._archive(path, limit_bytes + _TAR_HEADERS_BYTES) as archive:
            member = archive.next()
            content = archive.extractfile(member) if member is not None and member.isreg() else None
            return b"" if content is None else content.read(limit_bytes)

    def header(self, path: str) -> tarfile.TarInfo | None:
        """Owner, mode and kind of what is there, a link not followed."""
        if self.entry(path) is None:
            return None
        with self._archive(path, _TAR_HEADERS_BYTES) as archive:
            return archive.next()

    @contextmanager
    def chunks(self, path: str) -> Iterator[Iterator[bytes]]:
        """All that is there, whatever its size, as a tar in pieces."""
        answer = self._session.get(
            self._address, params={"path": path}, headers=_AS_IT_IS, timeout=self._timeout_s, stream=True
        )
        with closing(answer):
            _expect_success(answer, path)
            yield _pieces(answer, path)

    def names(self, path: str) -> tuple[str, ...]:
        """The names in a folder, as far as the limit reaches."""
        found: dict[str, None] = {}
        with self._archive(path, FOLDER_LIMIT_BYTES) as archive:
            try:
                for member in archive:
                    # The folder itself comes first, under its own name.
                    _, _, below = member.name.partition("/")
                    if name := below.partition("/")[0]:
                        found[name] = None
            except tarfile.ReadError:  # cut at the limit: what was seen until there is the answer
                pass
        return tuple(found)

    def _is_circle(self, path: str) -> bool:
        # The engine follows links itself to tell where they lead, and calls a circle an internal error. The
        # answer to a HEAD has no text that would tell it from others.
        answer = self._session.get(self._address, params={"path": path}, timeout=self._timeout_s, stream=True)
        with closing(answer):
            return answer.status_code >= _ERROR and any(text in answer.text for text in _CIRCLES)

    @contextmanager
    def _archive(self, path: str, limit_bytes: int) -> Iterator[tarfile.TarFile]:
        answer = self._session.get(
            self._address, params={"path": path}, headers=_AS_IT_IS, timeout=self._timeout_s, stream=True
        )
        # Without the close, an engine that is still sending holds its lock, and the removal waits a minute.
        with closing(answer):
            _expect_success(answer, path)
            with tarfile.open(fileobj=Bounded(answer.raw.read, limit_bytes), mode="r|") as archive:
                yield archive


class Bounded(io.RawIOBase):
    """The first bytes of a stream, whatever its length."""

    def __init__(self, read: Callable[[int], bytes], limit_bytes: int) -> None:
        super().__init__()
        self._read = read
        self._left = limit_bytes

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Buffer) -> int:
        """At most as much as the buffer holds; nothing at the end or at the limit."""
        view = memoryview(buffer)
        content = self._read(min(len(view), self._left))
        view[: len(content)] = content
        self._left -= len(content)
        return len(content)


def parse_stat(header: str) -> Entry | None:
    """The engine's description of a path; None for what cannot be understood."""
    try:
        stat = json.loads(base64.b64decode(header))
        mode, size, target = int(stat["mode"]), int(stat["size"]), str(stat["linkTarget"])
    except (ValueError, KeyError, TypeError):
        return None
    if mode & _GO_LINK:
        return Entry(Kind.LINK, target=target)
    if mode & _GO_DIR:
        return Entry(Kind.FOLDER)
    kind = Kind.OTHER if mode & _GO_TYPE else Kind.FILE
    return Entry(kind, size, bool(mode & _EXECUTABLE))


def _pieces(answer: Response, path: str) -> Iterator[bytes]:
    """What comes; a connection that breaks is an OSError here, and must not look like a disk that fails."""
    from requests.exceptions import RequestException

    try:
        yield from answer.iter_content(_PIECE_BYTES)
    except RequestException as error:
        raise PreflightError(
            f"{shown(path)} of the image did not come whole",
            cause=shown(str(error)),
            remedy="is the Docker engine still running?",
        ) from error


def _expect_success(answer: Response, path: str) -> None:
    if answer.status_code >= _ERROR:
        raise PreflightError(
            f"the Docker engine cannot read {shown(path)} of the image",
            cause=shown(f"status {answer.status_code}: {answer.text.strip()}"),
        )
