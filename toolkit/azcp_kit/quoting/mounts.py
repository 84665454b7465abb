"""Mounts as pyxis, enroot and Apptainer write them: none of them has a way to escape a separator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from azcp_runtime.contract import UsageError

from azcp_kit.quoting.utf8 import expect_utf8
from azcp_kit.shown import shown

_DEFAULT: Final = ("x-create=auto", "rbind")
"""What pyxis adds by itself: the mount point is made, and what is mounted below comes along."""


def pyxis_mount(source: str, target: str, flags: Sequence[str] = ()) -> str:
    """One entry of --container-mounts; entries are joined with commas.

    Raises:
        UsageError: a path cannot be written there.
    """
    _expect("pyxis", ",:", (source, target))
    return ":".join([source, target, *(["+".join(flags)] if flags else [])])


def enroot_mount(source: str, target: str, flags: Sequence[str] = ()) -> str:
    """The value of one --mount.

    Raises:
        UsageError: a path cannot be written there.
    """
    _expect("enroot", ":", (source, target))
    return f"{source}:{target}:{','.join([*_DEFAULT, *flags])}"


def apptainer_bind(source: str, target: str, flags: Sequence[str] = ()) -> str:
    """The value of one --bind.

    Raises:
        UsageError: a path cannot be written there.
    """
    for path in (source, target):
        _refuse("Apptainer", path, [c for c in path if c in ',:"\\' or c < " " or c == "\x7f"])
    return ":".join([source, target, *([",".join(flags)] if flags else [])])


def _expect(tool: str, separators: str, paths: Sequence[str]) -> None:
    """Both write a line of an fstab, which ends a field at white space and reads escapes and comments."""
    for path in paths:
        _refuse(tool, path, [c for c in path if c in f'{separators}\\"#$`' or c.isspace() or c < " "])


def _refuse(tool: str, path: str, found: Sequence[str]) -> None:
    expect_utf8(path)
    if found:
        names = " ".join(dict.fromkeys(repr(character) for character in found))
        raise UsageError(
            f"'{shown(path, 80)}' has {names} in it, which no mount of {tool} can carry",
            remedy="mount a folder above it, or a link without such characters",
        )
