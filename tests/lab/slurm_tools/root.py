"""What the stand-ins share: an image's file, and the way into its root file system."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

_HOST: Final = ("/proc", "/sys", "/dev", "/etc/hosts")
"""What every container sees of its node."""


OWN: Final = "LAB_TOOL_"
"""How the names of variables begin that no container gets."""

_UNSHARED: Final = f"{OWN}UNSHARED"


class RefusedError(Exception):
    """What the real tool would not do."""


@dataclass(frozen=True, slots=True)
class Image:
    """One that was imported.

    Args:
        layers: folders, the first on top.
        env: that it was built with.
        entrypoint: the same.
    """

    layers: Sequence[str]
    env: Mapping[str, str]
    entrypoint: Sequence[str]


@dataclass(frozen=True, slots=True)
class Bind:
    """A path of the node in a container."""

    source: str
    target: str
    flags: Sequence[str] = ()


def read_image(path: str) -> Image:
    """The image in a file.

    Raises:
        RefusedError: there is none.
    """
    try:
        return Image(**json.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise RefusedError(f"{path} is no image: {error}") from error


def enter(
    image: Image, binds: Sequence[Bind], *, is_writable: bool, env: Mapping[str, str], argv: Sequence[str]
) -> NoReturn:
    """Replace this process by a command in the image.

    Raises:
        RefusedError: a mount or the command cannot be had.
    """
    if os.environ.get(_UNSHARED) != str(os.getpid()):
        os.environ[_UNSHARED] = str(os.getpid())
        os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - an argument list, no shell
    root = Path(tempfile.mkdtemp(dir="/run"))
    _mount("-t", "tmpfs", "tmpfs", str(root))
    upper, work, merged = (root / name for name in ("upper", "work", "merged"))
    for folder in (upper, work, merged):
        folder.mkdir()
    layers = f"lowerdir={':'.join(image.layers)},upperdir={upper},workdir={work}"
    _mount("-t", "overlay", "overlay", "-o", layers, str(merged))
    for path in _HOST:
        _bind(merged, Bind(path, path))
    for bind in binds:
        _bind(merged, bind)
    if not is_writable:
        _mount("-o", "remount,ro,bind", str(merged))
    os.chroot(merged)
    os.chdir("/")
    clean = {name: value for name, value in env.items() if not name.startswith(OWN)}
    os.environ["PATH"] = clean.get("PATH", os.defpath)
    try:
        os.execvpe(argv[0], list(argv), clean)  # noqa: S606 - an argument list, no shell
    except OSError as error:
        raise RefusedError(f"{argv[0]}: {error.strerror}") from error


def _bind(root: Path, bind: Bind) -> None:
    source, target = Path(bind.source), root / bind.target.lstrip("/")
    if not source.exists():
        raise RefusedError(f"the mount source {source} does not exist")
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    _mount("--rbind", str(source), str(target))
    if "ro" in bind.flags:
        _mount("-o", "remount,ro,bind", str(target))


def _mount(*words: str) -> None:
    done = subprocess.run(["mount", "-n", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RefusedError(f"mount {' '.join(words)}: {done.stderr.strip()}")
