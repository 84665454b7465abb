"""Shared libraries by name, where the image's loader would look for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from azcp_kit.inspect import ld_cache
from azcp_kit.inspect.files import ImageTree

FOLDERS: Final = (
    "/lib64",
    "/usr/lib64",
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib",
    "/usr/lib",
    "/usr/local/lib",
)


class Libraries:
    """The loader's cache, and behind it the folders that are searched without one."""

    def __init__(self, tree: ImageTree) -> None:
        self.tree = tree
        self._cache: Mapping[str, tuple[str, ...]] = ld_cache.parse_ld_cache(
            tree.read(ld_cache.PATH, ld_cache.LIMIT_BYTES)
        )

    def cached(self, name: str) -> tuple[str, ...]:
        """The paths that the cache has for the name, those that are files."""
        return self.existing(self._cache.get(name, ()))

    def find(self, name: str) -> tuple[str, ...]:
        """Every file of that name, links resolved, the loader's choice first."""
        return self.existing([*self._cache.get(name, ()), *(f"{folder}/{name}" for folder in FOLDERS)])

    def existing(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Those of the paths that lead to something, links resolved, each once."""
        return tuple(dict.fromkeys(found for path in paths if (found := self.tree.resolve(path))))
