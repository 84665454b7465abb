"""Every Python of the image, by PATH and by the folders where distributions, conda and venvs put it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from azcp_kit.inspect.facts import Python
from azcp_kit.inspect.files import ImageTree
from azcp_kit.inspect.search_path import folders

_NAMES: Final = ("python3", "python")
_FOLDERS: Final = ("/usr/bin", "/usr/local/bin", "/opt/conda/bin", "/opt/venv/bin", "/opt/python/bin")
# RHEL's own tools use one that is not on PATH.
_PLATFORM_PYTHON: Final = "/usr/libexec/platform-python"
_IN_NAME: Final = re.compile(r"(?:^|/)(?:platform-)?python(\d\.\d{1,2})$")
_IN_VENV: Final = re.compile(r"^version(?:_info)?\s*=\s*(\d+\.\d+)", re.MULTILINE)


def detect_pythons(tree: ImageTree, env: Mapping[str, str]) -> tuple[Python, ...]:
    """The interpreters, the one that `python3` starts first; one that has several names once."""
    on_path = [f"{folder}/{name}" for name in _NAMES for folder in folders(env)]
    elsewhere = [f"{folder}/{name}" for folder in _FOLDERS for name in _NAMES]
    found: dict[tuple[str, str], Python] = {}
    for path in [*on_path, *elsewhere, _PLATFORM_PYTHON]:
        if not tree.is_program(path):
            continue
        target, venv = tree.resolve(path) or path, _venv_text(tree, path)
        key = (target, path.rpartition("/")[0] if venv else "")
        is_first = not found and path in on_path
        found.setdefault(key, Python(path, target, _version(target, venv), bool(venv), is_first))
    return tuple(found.values())


def _venv_text(tree: ImageTree, path: str) -> str:
    return tree.text(f"{path.rpartition('/')[0]}/../pyvenv.cfg")


def _version(target: str, venv: str) -> str:
    match = _IN_NAME.search(target) or _IN_VENV.search(venv)
    return match[1] if match else ""
