"""A tree as a folder: unpacked beside its place, then put there as a whole, and never over anything else."""

from __future__ import annotations

import json
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from azcp_runtime.contract import PreflightError, UsageError
from azcp_runtime.contract.image import MANIFEST, PREFIX

from azcp_kit.rehearse.archive import opened
from azcp_kit.shown import shown
from azcp_kit.tree.whole import whole

NAME: Final = PurePosixPath(PREFIX).name
"""How the names in the engine's tar begin."""

_MANIFEST: Final = PurePosixPath(MANIFEST).relative_to(PREFIX)


def writable_target(folder: Path) -> None:
    """Refuse a place that a tree cannot take.

    Raises:
        UsageError: something that is no tree is there, or the folder above is missing.
    """
    place = folder.resolve()
    if not place.parent.is_dir():
        raise UsageError(f"{place.parent} is no folder", remedy="make it first")
    if place.exists() and not (place.is_dir() and (_is_empty(place) or is_tree(place))):
        raise UsageError(
            f"{folder} holds something that azcp-kit did not put there",
            remedy="give an empty folder, one that does not exist, or one with an older tree",
        )


def is_tree(folder: Path) -> bool:
    """Whether the folder holds what an injected image has at PREFIX."""
    try:
        content = json.loads((folder / _MANIFEST).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and {"schema", "version", "components"} <= content.keys()


def put_folder(chunks: Iterator[bytes], folder: Path) -> None:
    """Unpack a tar of a tree, and give it its place once all of it is there.

    Args:
        chunks: of the tar.
        folder: its place.

    Raises:
        UsageError: the folder cannot be written.
        PreflightError: the tar ends too early, or is none of a tree.
    """
    writable_target(folder)
    place = folder.resolve()
    try:
        # Beside it: only there can it be renamed, and on a shared file system all nodes see it at once.
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}.") as work:
            pieces = whole(chunks)
            _unpack(pieces, Path(work))
            for _ in pieces:
                pass  # what is behind the last file is all that is left

            _exchange(Path(work, NAME), place, Path(work, "before"))
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror or error}") from error


def _unpack(chunks: Iterator[bytes], work: Path) -> None:
    try:
        with opened(chunks) as tar:
            tar.extractall(work, filter=_checked, numeric_owner=True)  # noqa: S202 - the filter looks at each member
    except tarfile.TarError as error:
        raise PreflightError(f"the image's {PREFIX} cannot be unpacked", cause=shown(str(error))) from error
    if (work / NAME).is_symlink() or not is_tree(work / NAME):
        raise PreflightError(f"the image's {PREFIX} came without its {_MANIFEST}", remedy="build it again")


def _checked(member: tarfile.TarInfo, work: str) -> tarfile.TarInfo:
    """The member as it is, with its owner and mode, if it stays inside of the tree.

    Raises:
        FilterError: it, or what it links to, is outside.
    """
    link = PurePosixPath(member.linkname)
    if member.issym() and link.is_absolute() and link.is_relative_to(PREFIX) and ".." not in link.parts:
        tarfile.tar_filter(member, work)
    else:
        tarfile.data_filter(member, work)
    return member


def _exchange(new: Path, place: Path, before: Path) -> None:
    """The new tree into its place; the old one, if there is one, goes with the folder that both came from."""
    if not place.exists() or _is_empty(place):
        new.replace(place)
        return
    place.rename(before)
    try:
        new.rename(place)
    except OSError:
        before.rename(place)
        raise


def _is_empty(folder: Path) -> bool:
    return next(folder.iterdir(), None) is None
