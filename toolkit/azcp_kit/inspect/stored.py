"""An image as the engine describes it, read into a type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from azcp_kit.inspect.facts import Identity


@dataclass(frozen=True)
class StoredImage:
    """What an image is, and its config as the engine gives it."""

    identity: Identity
    config: Mapping[str, object]

    @property
    def volumes(self) -> tuple[str, ...]:
        """The paths that the config declares as volumes."""
        found = self.config.get("Volumes")
        return tuple(found) if isinstance(found, Mapping) else ()


def read_stored(reference: str, attributes: Mapping[str, object]) -> StoredImage:
    """The image in the engine's answer; what is missing or null is empty."""
    size, config = attributes.get("Size"), attributes.get("Config")
    identity = Identity(
        reference=reference,
        id=_text(attributes, "Id"),
        digests=_words(attributes, "RepoDigests"),
        size_bytes=size if isinstance(size, int) else 0,
        layers=_words(attributes.get("RootFS"), "Layers"),
        os=_text(attributes, "Os"),
        arch=_text(attributes, "Architecture"),
        variant=_text(attributes, "Variant"),
    )
    return StoredImage(identity, config if isinstance(config, Mapping) else {})


def _text(source: Mapping[str, object], name: str) -> str:
    return str(source.get(name) or "")


def _words(source: object, name: str) -> tuple[str, ...]:
    found = source.get(name) if isinstance(source, Mapping) else None
    return tuple(str(word) for word in found) if isinstance(found, list) else ()
