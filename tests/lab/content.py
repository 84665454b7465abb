"""Content from a seed: any range of it in any order, so that a blob of gigabytes costs no memory."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

# A prime: a chunk that lands at a wrong place by any power of two never looks right.
PERIOD_BYTES: Final = 1_048_583
STAMP_BYTES: Final = 8


@dataclass(frozen=True)
class Content:
    """`size` bytes: one pseudo-random period after the other, each stamped with its index."""

    size: int
    seed: int

    def read(self, start: int, length: int) -> bytes:
        """The bytes from `start`, fewer than `length` at the end."""
        end = min(start + length, self.size)
        return b"".join(self._parts(start, end))

    def pieces(self) -> Iterator[bytes]:
        """All of it, period by period."""
        for start in range(0, self.size, PERIOD_BYTES):
            yield self.read(start, PERIOD_BYTES)

    def sha256(self) -> str:
        """Hex digest of all of it."""
        digest = hashlib.sha256()
        for piece in self.pieces():
            digest.update(piece)
        return digest.hexdigest()

    def md5(self) -> bytes:
        """What the service stores as Content-MD5."""
        digest = hashlib.md5(usedforsecurity=False)
        for piece in self.pieces():
            digest.update(piece)
        return digest.digest()

    def _parts(self, start: int, end: int) -> Iterator[bytes]:
        while start < end:
            index, offset = divmod(start, PERIOD_BYTES)
            length = min(end - start, PERIOD_BYTES - offset)
            yield self._period(index)[offset : offset + length]
            start += length

    def _period(self, index: int) -> bytes:
        base = _random_bytes(self.seed, min(self.size, PERIOD_BYTES))
        return base if index == 0 else index.to_bytes(STAMP_BYTES, "big") + base[STAMP_BYTES:]


@lru_cache(maxsize=8)
def _random_bytes(seed: int, length: int) -> bytes:
    return random.Random(seed).randbytes(length)
