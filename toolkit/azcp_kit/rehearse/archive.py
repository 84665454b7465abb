"""Tar streams for the engine's archive calls: folders and files with the owners Kubernetes gives them."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from azcp_kit.rehearse.volumes import VolumeFile

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer

STAMP: Final = "..2026_01_01_00_00_00.000000000"
"""What the kubelet puts a volume's files in, so that it can exchange all of them at once."""

_SETGID: Final = 0o2000
_GROUP_WRITES: Final = 0o660
_GROUP_READS: Final = 0o440
_GROUP_ENTERS: Final = 0o110
_FILES_FOLDER: Final = 0o777


def folder_tar(name: str, mode: int, group: int | None) -> bytes:
    """A folder of root's; of the pod's group too where it has one.

    Args:
        name: below where it is unpacked.
        mode: without a group.
        group: fsGroup, where the volume is subject to it.
    """
    own = mode if group is None else mode | _GROUP_WRITES | _GROUP_ENTERS | _SETGID
    return _tar([(name, own, group, None)])


def files_tar(name: str, files: Sequence[VolumeFile], group: int | None) -> bytes:
    """The files of a Secret or the like as the kubelet lays them out: links to a folder of that moment."""
    folder_mode = _FILES_FOLDER if group is None else _FILES_FOLDER | _SETGID
    members: list[tuple[str, int, int | None, bytes | str | None]] = [
        (name, folder_mode, group, None),
        (f"{name}/{STAMP}", 0o755 if group is None else 0o755 | _SETGID, group, None),
    ]
    folders = dict.fromkeys(str(parent) for file in files for parent in list(Path(file.path).parents)[:-1])
    members += [(f"{name}/{STAMP}/{folder}", 0o755, group, None) for folder in reversed(folders)]
    for file in files:
        mode = file.mode if group is None else file.mode | _GROUP_READS
        members.append((f"{name}/{STAMP}/{file.path}", mode, group, file.content))
    members.append((f"{name}/..data", 0o777, group, STAMP))
    for top in dict.fromkeys(file.path.partition("/")[0] for file in files):
        members.append((f"{name}/{top}", 0o777, group, f"..data/{top}"))
    return _tar(members)


def tree_tar(name: str, folder: Path) -> bytes:
    """A folder of this machine with all its files, as root's, readable by all."""
    members: list[tuple[str, int, int | None, bytes | str | None]] = [(name, 0o755, None, None)]
    for path in sorted(folder.rglob("*")):
        below = f"{name}/{path.relative_to(folder).as_posix()}"
        content = None if path.is_dir() else path.read_bytes()
        members.append((below, 0o755 if content is None else 0o644, None, content))
    return _tar(members)


def _tar(members: Iterable[tuple[str, int, int | None, bytes | str | None]]) -> bytes:
    """Name, mode, group and content of each: bytes of a file, a link's target, or None for a folder."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, mode, group, content in members:
            member = tarfile.TarInfo(name)
            member.mode, member.gid = mode, group or 0
            if content is None:
                member.type = tarfile.DIRTYPE
            elif isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
            else:
                member.size = len(content)
            tar.addfile(member, io.BytesIO(content) if isinstance(content, bytes) else None)
    return stream.getvalue()


@contextmanager
def opened(chunks: Iterator[bytes]) -> Iterator[tarfile.TarFile]:
    """A tar stream that comes in pieces, read from its beginning to its end."""
    with tarfile.open(fileobj=io.BufferedReader(_Pieces(chunks)), mode="r|") as tar:
        yield tar


class _Pieces(io.RawIOBase):
    def __init__(self, chunks: Iterator[bytes]) -> None:
        super().__init__()
        self._chunks = chunks
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer)
        if not self._left:
            self._left = memoryview(next(self._chunks, b""))
        size = min(len(view), len(self._left))
        view[:size], self._left = self._left[:size], self._left[size:]
        return size
