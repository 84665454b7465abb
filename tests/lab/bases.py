"""Base images by name, made when first asked for and kept in the engine under the digest of their recipe."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from docker import DockerClient
from docker.errors import ImageNotFound

from tests.lab import rootfs
from tests.lab.image_config import tag_as_architecture
from tests.lab.recipes import RECIPES, Recipe
from tests.lab.wheels import install_wheel

REPOSITORY: Final = "azcp-kit-lab"
BUILD_TIMEOUT_S: Final = 600
TAIL_LINES: Final = 20
EXECUTABLE: Final = 0o755


def cache_folder() -> Path:
    """Where root file systems and the images of our own dockerd outlive a run."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "azcp-kit", "lab")


@dataclass(frozen=True)
class Bases:
    """The images of tests.lab.recipes in one engine."""

    client: DockerClient
    folder: Path

    def __call__(self, name: str) -> str:
        """The reference of the base of that name, built if the engine has it not yet.

        Raises:
            RuntimeError: a step failed, with what it last said.
            TimeoutError: it took too long.
        """
        recipe = RECIPES[name]
        tag = f"{REPOSITORY}/{name}:{_digest(recipe)}"
        if self._exists(tag):
            return tag
        base = self(recipe.base) if recipe.base else ""
        if recipe.architecture:
            tag_as_architecture(self.client, base, recipe.architecture, tag)
        else:
            self._make(recipe, base, tag)
        return tag

    def _exists(self, tag: str) -> bool:
        try:
            self.client.images.get(tag)
        except ImageNotFound:
            return False
        return True

    def _make(self, recipe: Recipe, base: str, tag: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        # On the file system of the kept root file systems, which are linked into it.
        with tempfile.TemporaryDirectory(dir=self.folder) as work:
            self._write_context(recipe, Path(work))
            self._build(Path(work), tag, {"BASE": base} if base else {})

    def _write_context(self, recipe: Recipe, context: Path) -> None:
        (context / "Dockerfile").write_text(recipe.dockerfile, encoding="utf-8")
        for name, text in recipe.files:
            path = context / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            if text.startswith("#!"):
                path.chmod(EXECUTABLE)
        if recipe.wheel:
            install_wheel(recipe.wheel, context / "wheel")
        if recipe.rootfs:
            (context / "rootfs.tar").hardlink_to(rootfs.rootfs_tar(recipe.rootfs, self.folder))

    def _build(self, context: Path, tag: str, arguments: Mapping[str, str]) -> None:
        deadline = time.monotonic() + BUILD_TIMEOUT_S
        said: deque[str] = deque(maxlen=TAIL_LINES)
        # docker-py raises nothing for a step that failed: the stream says it.
        for message in self.client.api.build(
            path=str(context),
            tag=tag,
            buildargs=dict(arguments),
            decode=True,
            rm=True,
            forcerm=True,
        ):
            said.append(message.get("stream", ""))
            if "error" in message:
                raise RuntimeError(f"{tag} cannot be built: {message['error']}\n{''.join(said)}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"{tag} was not built in {BUILD_TIMEOUT_S} s\n{''.join(said)}")


def _digest(recipe: Recipe) -> str:
    """Of all that the image follows from: its recipe, its base's, and how root file systems are made."""
    below = _digest(RECIPES[recipe.base]) if recipe.base else ""
    tree = rootfs.recipe_digest() if recipe.rootfs else ""
    return hashlib.sha256(f"{recipe}{below}{tree}".encode()).hexdigest()[:12]
