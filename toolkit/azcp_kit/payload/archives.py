"""Brings a pinned archive here, checks its digest, and unpacks it: nothing unchecked is ever opened."""

from __future__ import annotations

import hashlib
import logging
import os
import tarfile
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import IO, Final

from azcp_runtime.contract import DownloadError, UsageError

from azcp_kit.payload.pins import Archive

log = logging.getLogger(__name__)

_PIECE_BYTES: Final = 1 << 20
_TIMEOUT_S: Final = 60.0
_MOST_BYTES: Final = 2 << 30


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
        return _checked(Path(archive.location), archive)
    kept = cache / "archives" / f"{archive.sha256}-{archive.file_name}"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        log.info("downloading %s %s", archive.name, archive.version)
        _download(archive, kept)
    return _checked(kept, archive)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar of any compression; a member that would leave the folder is refused.

    Raises:
        UsageError: it is no tar, or holds such a member.
    """
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
    except (tarfile.TarError, EOFError, OSError) as error:
        raise UsageError(
            f"{archive.name} cannot be unpacked: {error}", remedy="is it a tar archive?"
        ) from error


def digest_of(path: Path) -> str:
    """Its sha256 in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checked(path: Path, archive: Archive) -> Path:
    try:
        found = digest_of(path)
    except OSError as error:
        raise UsageError(f"{archive.name}: {path} cannot be read: {error.strerror}") from error
    if found != archive.sha256:
        raise DownloadError(
            f"{archive.name}: {path} has sha256 {found}, not {archive.sha256}",
            cause="another version, or a file that was tampered with",
            remedy="compare with what its publisher says; a damaged copy in the cache may be removed",
        )
    return path


def _download(archive: Archive, target: Path) -> None:
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        # Proxies and a private CA come from the environment, as urllib and OpenSSL read them.
        with (
            urllib.request.urlopen(archive.location, timeout=_TIMEOUT_S) as answer,  # noqa: S310 - http or https, says is_remote
            partial.open("xb") as file,
        ):
            _copy(answer, file, archive)
        os.replace(_checked(partial, archive), target)
    except (OSError, HTTPException) as error:
        raise DownloadError(
            f"{archive.name} {archive.version} cannot be downloaded from {archive.location}: {error}",
            remedy=f"download it elsewhere and name the file: --{archive.name} PATH@sha256:{archive.sha256}",
        ) from error
    finally:
        partial.unlink(missing_ok=True)


def _copy(answer: IO[bytes], file: IO[bytes], archive: Archive) -> None:
    while piece := answer.read(_PIECE_BYTES):
        file.write(piece)
        if file.tell() > _MOST_BYTES:
            raise DownloadError(
                f"{archive.location} is larger than {_MOST_BYTES >> 30} GiB: not what was pinned"
            )
