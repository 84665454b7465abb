"""A small folder with names that break careless programs, and the proof that it arrived."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from azcp_runtime.contract import STATE_DIR
from azcp_runtime.source.names import shown

LARGE_BYTES: Final = 12 * 2**20 + 7
"""More than one chunk, and no multiple of a page."""

_NAMES: Final = (
    b"config.json",
    b"shards/model 00001-of-00002.safetensors",
    b" leading and trailing ",
    b"two\nlines\ttabbed\r",
    b"'single' \"double\" `tick` $(touch x) ${HOME} %s",
    b"back\\slash",
    b"-rf",
    b"*?[a-z]{1,2}",
    b"a;b|c&d>e<f#g!h",
    b"%2e%2e%2f..%00",
    b"...",
    b"=+@,:~^",
    "ключ/重み/né/ne\u0301".encode(),
    "\u202egnp.exe".encode(),
    b"no utf-8 \xff\xfe\x80",
    b"n" * 255,
    b"/".join([b"deep"] * 40),
)


def make_folder(root: Path) -> None:
    """Fill a folder: an empty file, small ones with hostile names, and two that are cut into ranges."""
    for number, name in enumerate(_NAMES):
        _write(root, name, 997 * number + 1)
    _write(root, b"empty", 0)
    for name in (b"large-0", b"large-1"):
        _write(root, name, LARGE_BYTES)


def differences(source: Path, dest: Path) -> Iterator[str]:
    """How the destination is another than the source."""
    wanted, found = _digests(source), _digests(dest)
    for name in sorted(wanted.keys() | found.keys()):
        if name not in found:
            yield f"{shown(name)} is missing"
        elif name not in wanted:
            yield f"{shown(name)} is too much"
        elif wanted[name] != found[name]:
            yield f"{shown(name)} has other bytes"


def _write(root: Path, name: bytes, size_bytes: int) -> None:
    path = os.path.join(os.fsencode(root), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(random.Random(name).randbytes(size_bytes))


def _digests(root: Path) -> dict[bytes, bytes]:
    top = os.fsencode(root)
    found = {}
    for folder, folders, names in os.walk(top):
        if folder == top and STATE_DIR.encode() in folders:
            folders.remove(STATE_DIR.encode())
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, top)] = hashlib.file_digest(file, "sha256").digest()
    return found
