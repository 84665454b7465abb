"""An image of a registry as enroot and Apptainer name it, pinned by its digest."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from azcp_runtime.contract import UsageError

_PINNED: Final = re.compile(r"(?P<name>[^@]+)@sha256:(?P<digest>[0-9a-f]{64})", re.ASCII)
_PATH: Final = re.compile(r"[a-z0-9/._-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Pinned:
    """An image that stays the same.

    Args:
        registry: its host; empty for Docker Hub.
        path: in the registry, without a tag.
        digest: 64 hex digits.
    """

    registry: str
    path: str
    digest: str

    @property
    def file_stem(self) -> str:
        """What a file of it is called."""
        return f"{self.path.rpartition('/')[2]}-{self.digest}"


def pinned_image(image: str) -> Pinned:
    """The parts of HOST/PATH[:TAG]@sha256:DIGEST.

    Raises:
        UsageError: it has no digest, or is no such name.
    """
    match = _PINNED.fullmatch(image)
    if not match:
        raise UsageError(
            f"{image} is not pinned, and its tag may mean something else tomorrow",
            remedy="write NAME@sha256:DIGEST, as `docker push` and `docker images --digests` say it",
        )
    first, slash, rest = match["name"].partition("/")
    is_host = slash and ("." in first or ":" in first or first == "localhost")
    registry, path = (first, rest) if is_host else ("", match["name"])
    path = re.sub(r":[^/:]*$", "", path)
    if not _PATH.fullmatch(path):
        raise UsageError(f"{path} is no path of a registry", remedy="lower-case letters, digits and /._-")
    return Pinned(registry, path, match["digest"])


def enroot_uri(image: Pinned) -> str:
    """What `enroot import` takes: # ends the registry, and a digest stands where a tag does."""
    return f"docker://{image.registry}{'#' if image.registry else ''}{image.path}:sha256:{image.digest}"


def apptainer_uri(image: Pinned) -> str:
    """What `apptainer pull` takes."""
    return f"docker://{image.registry}{'/' if image.registry else ''}{image.path}@sha256:{image.digest}"
