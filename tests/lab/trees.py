"""A destination tree against what it must hold: every difference, each in one line."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from azcp_runtime.contract import PARTIAL_PREFIX, STATE_DIR

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True)
class Entry:
    """What a file must be, byte for byte."""

    size: int
    sha256: str


def differences(tree: Path, manifest: Mapping[str, Entry]) -> list[str]:
    """Every file that is missing, unexpected or different; the runtime's own files do not count."""
    found = {name: path for name, path in _files(tree) if not _is_partial(path)}
    missing = [f"missing: {name!r}" for name in sorted(manifest.keys() - found.keys())]
    unexpected = [f"unexpected: {name!r}" for name in sorted(found.keys() - manifest.keys())]
    wrong = [
        _difference(name, found[name], manifest[name]) for name in sorted(found.keys() & manifest.keys())
    ]
    return missing + unexpected + [line for line in wrong if line]


def wrong_files(tree: Path, manifest: Mapping[str, Entry]) -> list[str]:
    """The differences of what is there; what is not there yet is no lie."""
    return [line for line in differences(tree, manifest) if not line.startswith("missing")]


def partial_files(tree: Path) -> list[str]:
    """The unfinished files that the runtime left."""
    return sorted(name for name, path in _files(tree) if _is_partial(path))


def is_begun(folder: Path) -> bool:
    """Whether anything is in it yet; cheap, however much there is."""
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is not None
    except FileNotFoundError:
        return False


def final_files(tree: Path) -> list[str]:
    """The names under which a reader would find something."""
    return sorted(name for name, path in _files(tree) if not _is_partial(path))


def assert_same(tree: Path, manifest: Mapping[str, Entry]) -> None:
    """The tree is the data set, whole, and nothing unfinished lies beside it."""
    problems = differences(tree, manifest) + [f"left behind: {name!r}" for name in partial_files(tree)]
    assert not problems, f"{tree}: {len(problems)} differences\n" + "\n".join(problems[:20])


def _files(tree: Path) -> Iterator[tuple[str, Path]]:
    for folder, subfolders, names in os.walk(tree):
        if Path(folder) == tree and STATE_DIR in subfolders:
            subfolders.remove(STATE_DIR)
        for name in names:
            path = os.path.join(folder, name)
            yield os.path.relpath(path, tree), Path(path)


def _is_partial(path: Path) -> bool:
    return path.name.startswith(PARTIAL_PREFIX)


def _difference(name: str, path: Path, entry: Entry) -> str:
    if path.is_symlink() or not path.is_file():
        return f"not a file: {name!r}"
    size = path.stat().st_size
    if size != entry.size:
        return f"size: {name!r} has {size} bytes, not {entry.size}"
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return "" if digest == entry.sha256 else f"content: {name!r} has sha256 {digest}, not {entry.sha256}"
