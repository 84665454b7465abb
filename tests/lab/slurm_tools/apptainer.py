"""Apptainer: `exec` and `run` of an image's file, and `pull` from the registry of the lab."""

from __future__ import annotations

import getopt
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.lab.slurm_tools.enroot import fetch
from tests.lab.slurm_tools.root import Bind, RefusedError, enter, read_image

_URI: Final = re.compile(r"docker://[A-Za-z0-9.:_/-]+@(sha256:[0-9a-f]{64})")
_IMAGE_WINS: Final = ("PATH", "LD_LIBRARY_PATH")
_MOST_FIELDS: Final = 3


def main(argv: Sequence[str]) -> int:
    """One command of it."""
    try:
        {"pull": _pull, "exec": _exec, "run": _run}[argv[0]](list(argv[1:]))
    except (RefusedError, KeyError, getopt.GetoptError) as error:
        print(f"FATAL:   {error}", file=sys.stderr)
        return 255
    return 0


def _exec(argv: list[str]) -> None:
    _start(argv, is_run=False)


def _run(argv: list[str]) -> None:
    _start(argv, is_run=True)


def _start(argv: list[str], *, is_run: bool) -> None:
    options, (file, *command) = getopt.getopt(argv, "B:", ["bind=", "env=", "nv", "rocm", "writable-tmpfs"])
    image = read_image(file)
    binds = [bind for name, value in options if name in ("-B", "--bind") for bind in read_binds(value)]
    of_image = {
        name: value for name, value in image.env.items() if name in _IMAGE_WINS or name not in os.environ
    }
    words = [*image.entrypoint, *command] if is_run else command
    enter(image, binds, is_writable=False, env={**os.environ, **of_image}, argv=words)


def read_binds(text: str) -> list[Bind]:
    """SRC[:DEST[:OPTS]], more of them after commas.

    Raises:
        RefusedError: an entry is none.
    """
    found: list[Bind] = []
    for entry in text.split(","):
        fields = entry.split(":")
        # An option after a comma belongs to the entry before it.
        if found and entry in ("ro", "rw", "nosuid", "nodev"):
            found[-1] = Bind(found[-1].source, found[-1].target, [*found[-1].flags, entry])
            continue
        if len(fields) > _MOST_FIELDS or not fields[0].startswith("/") or any(c in entry for c in '"\\'):
            raise RefusedError(f"while parsing bind path: {entry}")
        target = fields[1] if len(fields) > 1 else fields[0]
        found.append(Bind(fields[0], target, fields[2:]))
    return found


def _pull(argv: list[str]) -> None:
    file, uri = argv
    match = _URI.fullmatch(uri)
    if not match:
        raise RefusedError(f"invalid reference format: {uri}")
    if Path(file).exists():
        raise RefusedError(f"image file already exists: {file}")
    fetch(match[1], Path(file))
