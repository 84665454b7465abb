"""Brings a pinned archive here, checks its digest, and unpacks it: nothing unchecked is ever opened."""

from __future__ import annotations

import hashlib
import logging
import lzma
import os
import tarfile
import tempfile
import urllib.request
import zlib
from collections.abc import Iterator
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import IO, Final
from urllib.error import HTTPError

from azcp_runtime.contract import DownloadError, UsageError

from azcp_kit.payload.pins import Archive

log = logging.getLogger(__name__)

_PIECE_BYTES: Final = 1 << 20
_WITHOUT: Final = {"rdma-core": "; or do without RDMA: --rdma none"}
_TIMEOUT_S: Final = 60.0
_MOST_BYTES: Final = 2 << 30
_NAME_CHARACTERS: Final = 100


def cache_folder() -> Path:
    """Where what was downloaded is kept, by digest: XDG_CACHE_HOME/azcp-kit."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "azcp-kit"


def obtain(archive: Archive, cache: Path) -> Path:
    """The archive as a local file with the right digest.

    Raises:
        UsageError: the path does not exist.
        DownloadError: it cannot be downloaded, or its digest is another one.
    """
    if not archive.is_remote:
        return _checked(Path(archive.location), archive, archive.location)
    kept = cache / "archives" / f"{archive.sha256}-{archive.file_name[-_NAME_CHARACTERS:]}"
    if kept.exists():
        return _checked(kept, archive, str(kept))
    log.info("downloading %s %s", archive.name, archive.version)
    _download(archive, kept)
    return kept


def fetch(archive: Archive, target: Path) -> None:
    """Download an archive, whatever its digest; proxies and a private CA come from the environment.

    Raises:
        DownloadError: it cannot be had, or not whole.
    """
    try:
        with (
            urllib.request.urlopen(archive.location, timeout=_TIMEOUT_S) as answer,  # noqa: S310 - http or https, says is_remote
            target.open("xb") as file,
        ):
            _copy(answer, file)
    except (OSError, ValueError, HTTPException) as error:
        if isinstance(error, HTTPError):
            error.close()  # it is the answer too, with its connection
        raise DownloadError(
            f"{archive.name} {archive.version} cannot be downloaded from {archive.shown_location}: {error}",
            remedy=f"download it elsewhere and name the file: --{archive.name} PATH@sha256:DIGEST"
            f"{_WITHOUT.get(archive.name, '')}",
        ) from error


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar of any compression; a member that would leave the folder is refused.

    Raises:
        UsageError: it is no tar, or holds such a member.
    """
    try:
        with tarfile.open(archive) as tar:
            # Absent before 3.11.4, and Debian 12 has 3.11.2: the members are looked at in any case.
            tar.extraction_filter = getattr(tarfile, "data_filter", None)
            tar.extractall(folder, members=_within(tar, folder.resolve()))  # noqa: S202 - they are looked at
    except (tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError) as error:
        raise UsageError(
            f"{archive.name} cannot be unpacked: {error}",
            remedy="is it a tar archive, plain or compressed by gzip, bzip2 or xz?",
        ) from error


def digest_of(path: Path) -> str:
    """Its sha256 in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _within(tar: tarfile.TarFile, folder: Path) -> Iterator[tarfile.TarInfo]:
    """Its members one by one, so that each is judged by the links that those before it have made."""
    for member in tar:
        path = folder / member.name
        places = [path]
        if member.issym() or member.islnk():
            places.append((path.parent if member.issym() else folder) / member.linkname)
        is_plain = member.isreg() or member.isdir() or len(places) > 1
        if not is_plain or not all(place.resolve().is_relative_to(folder) for place in places):
            raise tarfile.ExtractError(f"its member {member.name!r} would not stay in its folder")
        yield member


def _checked(path: Path, archive: Archive, where: str) -> Path:
    try:
        found = digest_of(path)
    except OSError as error:
        raise UsageError(f"{archive.name}: {where} cannot be read: {error.strerror}") from error
    if found != archive.sha256:
        raise DownloadError(
            f"{archive.name}: {where} has sha256 {found}, not {archive.sha256}",
            cause="another version, or a file that was tampered with",
            remedy="compare with what its publisher says; a damaged copy in the cache may be removed",
        )
    return path


def _download(archive: Archive, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="partial-", dir=target.parent) as work:
            partial = Path(work, "archive")
            fetch(archive, partial)
            os.replace(_checked(partial, archive, archive.shown_location), target)
    except OSError as error:
        raise DownloadError(f"{archive.name}: {target.parent} cannot be written: {error}") from error


def _copy(answer: HTTPResponse, file: IO[bytes]) -> None:
    while piece := answer.read(_PIECE_BYTES):
        file.write(piece)
        if file.tell() > _MOST_BYTES:
            raise ValueError(f"it is larger than {_MOST_BYTES >> 30} GiB, so not what was pinned")
    # A read of so many bytes ends well when the connection is cut; what is left to come tells.
    if answer.length:
        raise ValueError(f"the connection was cut with {answer.length} bytes to come")
