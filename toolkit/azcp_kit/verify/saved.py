"""Reads the added layers out of what the engine saves: one stream, nothing kept, the base passed over."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

from azcp_kit.engine import TIMEOUT_S, Engine, errors_told
from azcp_kit.inspect.stored import StoredImage
from azcp_kit.verify.layer import Breach, Rule, breaches
from azcp_kit.verify.secret_text import LARGEST_BYTES

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer

_BLOCK_BYTES: Final = 2**20
_MOST_BREACHES: Final = 50
"""Of one rule in one layer; the others are not told apart any more."""

_COPY_TIMEOUT_S: Final = 10 * TIMEOUT_S
"""To the first byte: an engine may copy all layers before it sends one."""

_SPARE_BYTES: Final = 32 * 2**20
_GZIP: Final = b"\x1f\x8b"
_BLOB: Final = "blobs/sha256/"
_LEGACY: Final = "/layer.tar"


@dataclass(frozen=True, slots=True)
class Layer:
    """One added layer.

    Args:
        diff_id: sha256 of its tar, as the image's config names it.
        size_bytes: of the files in it.
        breaches: what is wrong with its entries, of each rule only so many.
    """

    diff_id: str
    size_bytes: int
    breaches: tuple[Breach, ...]


def added_layers(engine: Engine, image: StoredImage, count: int) -> tuple[Layer, ...]:
    """The topmost layers, as far as they could be read.

    The engine sends the layers before the list that names them, so each is told by its digest. A layer much
    larger than the image's added bytes is passed over unread; if one of ours was among them, all are read.

    Args:
        engine: that holds the image.
        image: the injected one.
        count: of the layers that were added.
    """
    below, added = image.identity.layers[:-count], image.identity.layers[-count:]
    found: dict[str, Layer] = {}
    for limit_bytes in (_likely_bytes(engine, image, count), None):
        with _saved(engine, image.identity.id) as archive:
            found = {layer.diff_id: layer for layer in scan(archive, set(below), limit_bytes)}
        if set(added) <= found.keys():
            break
    return tuple(found[diff_id] for diff_id in added if diff_id in found)


def scan(archive: tarfile.TarFile, below: set[str], limit_bytes: int | None) -> Iterator[Layer]:
    """Every layer of a saved image that may be one of ours, the base's included where they look the same."""
    for member in archive:
        name = member.name
        is_layer = name.endswith(_LEGACY) or name.startswith(_BLOB)
        if not (is_layer and member.isreg()) or f"sha256:{name.removeprefix(_BLOB)}" in below:
            continue
        if limit_bytes is not None and member.size > limit_bytes:
            continue
        content = archive.extractfile(member)
        if content is not None and (layer := _read_layer(content)):
            yield layer


def _read_layer(content: IO[bytes]) -> Layer | None:
    """The layer; None for a blob that is a config or a manifest, or is packed in a way unknown here."""
    begin = content.read(tarfile.BLOCKSIZE)
    rest = _Joined(begin, content)
    hashed = _Hashed(gzip.GzipFile(fileobj=rest).read if begin.startswith(_GZIP) else rest.read)
    size_bytes, found = 0, dict[Rule, list[Breach]]()
    try:
        with tarfile.open(fileobj=hashed, mode="r|", bufsize=_BLOCK_BYTES) as layer:
            for member in layer:
                size_bytes += member.size if member.isreg() else 0
                for breach in breaches(member, _text_of(layer, member)):
                    kept = found.setdefault(breach.rule, [])
                    if len(kept) < _MOST_BREACHES:
                        kept.append(breach)
        hashed.drain()
    except (tarfile.ReadError, gzip.BadGzipFile, EOFError, zlib.error):
        return None
    return Layer(
        f"sha256:{hashed.digest()}", size_bytes, tuple(each for kept in found.values() for each in kept)
    )


def _text_of(layer: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = layer.extractfile(member) if member.isreg() else None
    return b"" if file is None else file.read(LARGEST_BYTES)


def _likely_bytes(engine: Engine, image: StoredImage, count: int) -> int:
    """More than any of the topmost layers takes: half as much again as its files, for headers, and room."""
    sizes = [size_bytes for _, size_bytes in engine.steps(image) if size_bytes]
    return max(sizes[:count], default=0) * 3 // 2 + _SPARE_BYTES


@contextmanager
def _saved(engine: Engine, image_id: str) -> Iterator[tarfile.TarFile]:
    api = engine.client.api
    address = f"{api.base_url}/v{api.api_version}/images/{image_id}/get"
    with errors_told("the engine cannot save the image"):
        answer = api.get(
            address, headers={"Accept-Encoding": "identity"}, stream=True, timeout=_COPY_TIMEOUT_S
        )
        with closing(answer):
            answer.raise_for_status()
            with tarfile.open(fileobj=answer.raw, mode="r|", bufsize=_BLOCK_BYTES) as archive:
                yield archive


class _Joined(io.RawIOBase):
    """What was read already, and the rest."""

    def __init__(self, begin: bytes, rest: IO[bytes]) -> None:
        super().__init__()
        self._begin = begin
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer)
        content = self._begin[: len(view)] or self._rest.read(len(view))
        self._begin = self._begin[len(view) :]
        view[: len(content)] = content
        return len(content)


class _Hashed(io.RawIOBase):
    """A stream, and the digest of all that was read from it."""

    def __init__(self, source: Callable[[int], bytes | None]) -> None:
        super().__init__()
        self._source = source
        self._sha256 = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer)
        content = self._source(len(view)) or b""
        self._sha256.update(content)
        view[: len(content)] = content
        return len(content)

    def drain(self) -> None:
        """Read what lies behind the end of the archive."""
        while self.read(_BLOCK_BYTES):
            pass

    def digest(self) -> str:
        """Of all so far."""
        return self._sha256.hexdigest()
