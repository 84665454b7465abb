"""The data set of a rehearsal: made once, put where it is read from, compared with what the nodes have."""

from __future__ import annotations

import hashlib
import posixpath
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from azcp_runtime.contract import PARTIAL_PREFIX, STATE_DIR, PreflightError

from azcp_kit.azurite import Azurite
from azcp_kit.dataset import make_data_set
from azcp_kit.rehearse.account import Source
from azcp_kit.rehearse.archive import opened
from azcp_kit.shown import shown

_PIECE_BYTES: Final = 1 << 20
_SHOWN: Final = 5
_SMALL_FILES: Final = 100


@dataclass(frozen=True, slots=True)
class Cargo:
    """The data set.

    Args:
        folder: where it lies on this machine.
        digests: SHA-256 of each file by its relative name.
        size_bytes: of all files.
    """

    folder: Path
    digests: dict[str, str]
    size_bytes: int


def make_cargo(folder: Path, size_bytes: int) -> Cargo:
    """Make a data set of about that size, with the names that break naive tools."""
    made = make_data_set(folder, size_bytes, small_files=_SMALL_FILES)
    files = (path for path in folder.rglob("*") if path.is_file())
    digests = {path.relative_to(folder).as_posix(): _digest(path) for path in files}
    return Cargo(folder, digests, made.size_bytes)


def upload_cargo(cargo: Cargo, azurite: Azurite, sources: Iterable[Source], work: Path) -> None:
    """Put the data set at each of the places.

    Args:
        cargo: the data set.
        azurite: with all the accounts.
        sources: places in them.
        work: an empty folder; one of the data set's own is linked into it under each prefix.

    Raises:
        PreflightError: the emulator refuses.
    """
    # The SDK takes a third of a second to import.
    from azcp_kit.upload import upload_folder

    containers: dict[tuple[str, str], list[str]] = {}
    for source in sources:
        containers.setdefault((source.account, source.container), []).append(source.prefix)
    host = azurite.endpoint.rpartition("/")[0]
    for number, ((account, container), prefixes) in enumerate(sorted(containers.items())):
        root = work / str(number)
        for prefix in prefixes:
            _link_tree(cargo.folder, root / prefix)
        one = replace(azurite, endpoint=f"{host}/{account}", account=account)
        upload_folder(root, one, container)


def _link_tree(folder: Path, target: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            place = target / path.relative_to(folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.hardlink_to(path)


def differences(cargo: Cargo, chunks: Iterator[bytes]) -> tuple[str, ...]:
    """How a folder that comes as a tar stream differs from the data set; nothing where it does not.

    Raises:
        PreflightError: the stream breaks off.
    """
    found: dict[str, str] = {}
    try:
        with opened(chunks) as tar:
            for member in tar:
                # The folder itself comes first, under its own name.
                _, _, name = member.name.partition("/")
                if member.isdir() or not name or _is_ours(name):
                    continue
                found[name] = _member_digest(tar, member)
    except tarfile.TarError as error:
        raise PreflightError("the engine does not send a folder to its end", cause=str(error)) from error
    return file_differences(cargo, found)


def file_differences(cargo: Cargo, found: Mapping[str, str]) -> tuple[str, ...]:
    """How files differ from the data set, by their names and digests; the runtime's own are left out."""
    found = {name: digest for name, digest in found.items() if not _is_ours(name)}
    lines = [f"{shown(name)} is missing" for name in sorted(cargo.digests.keys() - found.keys())]
    lines += [f"{shown(name)} is not in the data set" for name in sorted(found.keys() - cargo.digests.keys())]
    both = sorted(found.keys() & cargo.digests.keys())
    lines += [f"{shown(name)} has other bytes" for name in both if found[name] != cargo.digests[name]]
    more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return (*lines[:_SHOWN], *more)


def _is_ours(name: str) -> bool:
    return name.split("/", 1)[0] == STATE_DIR or posixpath.basename(name).startswith(PARTIAL_PREFIX)


def _member_digest(tar: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    stream = tar.extractfile(member) if member.isreg() else None
    if stream is None:
        return "no regular file"
    digest = hashlib.sha256()
    while piece := stream.read(_PIECE_BYTES):
        digest.update(piece)
    return digest.hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
