"""An image that says it is of another architecture: the same layers under an edited config."""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
from pathlib import Path
from typing import IO, Any

from docker import DockerClient


def tag_as_architecture(client: DockerClient, image: str, architecture: str, tag: str) -> None:
    """Give the engine a copy of `image` whose config names that architecture; what it holds stays the same.

    The builder's --platform is no way to it: 20.10 takes layers from its cache whatever their platform.
    """
    with tempfile.TemporaryDirectory() as work:
        saved, edited = Path(work, "saved.tar"), Path(work, "edited.tar")
        with saved.open("wb") as stream:
            stream.writelines(client.images.get(image).save())
        with tarfile.open(saved) as source, tarfile.open(edited, "w") as target:
            _copy(source, target, architecture, tag)
        with edited.open("rb") as stream:
            client.images.load(stream)


def _copy(source: tarfile.TarFile, target: tarfile.TarFile, architecture: str, tag: str) -> None:
    """Write the layers and the config in the form that every version of `docker load` takes."""
    (manifest,) = json.load(_member(source, "manifest.json"))
    config = json.load(_member(source, manifest["Config"])) | {"architecture": architecture}
    # It is what the builder's cache compares: a later build must not start from this image.
    config.pop("container_config", None)
    _add(target, "config.json", config)
    for layer in manifest["Layers"]:
        content = _member(source, layer)
        info = tarfile.TarInfo(layer)
        info.size = content.seek(0, io.SEEK_END)
        content.seek(0)
        target.addfile(info, content)
    _add(
        target, "manifest.json", [{"Config": "config.json", "RepoTags": [tag], "Layers": manifest["Layers"]}]
    )


def _member(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    """The content of a member, also where it is a link to another one."""
    stream = archive.extractfile(name)
    if stream is None:
        raise ValueError(f"{name} is no file of the saved image")
    return stream


def _add(target: tarfile.TarFile, name: str, document: Any) -> None:  # noqa: ANN401 - whatever JSON can say
    content = json.dumps(document).encode()
    info = tarfile.TarInfo(name)
    info.size = len(content)
    target.addfile(info, io.BytesIO(content))
