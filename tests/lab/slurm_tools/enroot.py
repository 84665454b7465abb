"""enroot: `start` of an image's file, and `import` from the registry of the lab."""

from __future__ import annotations

import getopt
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.lab.slurm_tools import REGISTRY
from tests.lab.slurm_tools.root import Bind, RefusedError, enter, read_image

_URI: Final = re.compile(
    r"docker://(?:[A-Za-z0-9_.!~*'()%;:&=+$,-]+@)?(?:[^#]+#)?[a-z0-9/._-]+(?:[:@]([A-Za-z0-9._:-]+))?"
)
_MOUNT: Final = re.compile(r"[^\s]+:[^\s]+")
_ENV: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(=.*)?", re.DOTALL)


def main(argv: Sequence[str]) -> int:
    """One command of it."""
    try:
        {"start": _start, "import": _import}[argv[0]](list(argv[1:]))
    except (RefusedError, KeyError, getopt.GetoptError) as error:
        print(f"[ERROR] enroot: {error}", file=sys.stderr)
        return 1
    return 0


def _start(argv: list[str]) -> None:
    options, (file, *command) = getopt.getopt(argv, "r:wm:e:", ["rc=", "rw", "root", "mount=", "env="])
    image = read_image(file)
    env = dict(image.env)
    binds, script = [], ""
    for name, value in options:
        if name in ("-m", "--mount"):
            binds.append(read_mount(value))
        elif name in ("-e", "--env"):
            if not _ENV.fullmatch(value):
                raise RefusedError(f"Invalid argument: {value}")
            key, equals, text = value.partition("=")
            env[key] = text if equals else os.environ.get(key, "")
        elif name in ("-r", "--rc"):
            if not Path(value).is_file():
                raise RefusedError(f"No such file or directory: {value}")
            script = Path(value).read_text(encoding="utf-8")
    is_writable = any(name in ("-w", "--rw") for name, _ in options)
    words = ["/bin/sh", "-c", script, "rc", *command] if script else [*image.entrypoint, *command]
    enter(image, binds, is_writable=is_writable, env={**os.environ, **env}, argv=words)


def read_mount(text: str) -> Bind:
    """SRC:DST[:FLAGS], which becomes a line of an fstab.

    Raises:
        RefusedError: it is none.
    """
    if not _MOUNT.fullmatch(text):
        raise RefusedError(f"Invalid argument: {text}")
    source, target, *flags = text.split(":")
    if len(flags) > 1:
        raise RefusedError(f"Invalid fstab entry: {text}")
    return Bind(source, target, flags[0].split(",") if flags else [])


def _import(argv: list[str]) -> None:
    options, (uri,) = getopt.getopt(argv, "o:a:", ["output=", "arch="])
    output = Path(dict(options)["--output"])
    match = _URI.fullmatch(uri)
    if not match:
        raise RefusedError(f"Invalid image reference: {uri}")
    if output.exists():
        raise RefusedError(f"File already exists: {output}")
    fetch(match[1] or "latest", output)


def fetch(tag: str, output: Path) -> None:
    """Write the image of that digest.

    Raises:
        RefusedError: the registry has none.
    """
    found = Path(os.environ[REGISTRY], tag.removeprefix("sha256:"))
    if not found.is_file():
        raise RefusedError(f"URL returned error code: 404 Not Found ({tag})")
    shutil.copyfile(found, output)
