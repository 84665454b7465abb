"""OpenSSH of the image: the server's version is read from its own bytes, whatever package brought it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from azcp_kit.inspect.facts import Ssh
from azcp_kit.inspect.files import ImageTree
from azcp_kit.inspect.search_path import folders

_SERVER_FOLDERS: Final = ("/usr/sbin", "/usr/local/sbin", "/usr/bin")
_LIMIT_BYTES: Final = 16 * 2**20
# Beside its own name the program holds patterns of old releases, such as OpenSSH_2.*, without a p.
_VERSION: Final = re.compile(rb"OpenSSH_(\d{1,3}\.\d{1,3}p\d{1,3})")


def detect_ssh(tree: ImageTree, env: Mapping[str, str]) -> Ssh:
    """The server, its version and the client."""
    server = _program(tree, "sshd", (*_SERVER_FOLDERS, *folders(env)))
    match = _VERSION.search(tree.read(server, _LIMIT_BYTES)) if server else None
    client = _program(tree, "ssh", ("/usr/bin", *folders(env)))
    return Ssh(server, match[1].decode() if match else "", client)


def _program(tree: ImageTree, name: str, places: tuple[str, ...]) -> str:
    return next((path for folder in places if tree.is_program(path := f"{folder}/{name}")), "")
