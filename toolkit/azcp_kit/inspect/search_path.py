"""The folders that PATH and its like name in an image's ENV."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DEFAULT: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""What the engine sets where the image's ENV has no PATH."""

MOST_FOLDERS: Final = 64
"""An ENV may be hostile, and each folder costs questions to the engine."""


def folders(env: Mapping[str, str], name: str = "PATH") -> tuple[str, ...]:
    """The absolute folders of the variable in their order, each once."""
    value = env.get(name, DEFAULT if name == "PATH" else "")
    absolute = (folder.rstrip("/") for folder in value.split(":") if folder.startswith("/"))
    return tuple(dict.fromkeys(absolute))[:MOST_FOLDERS]
