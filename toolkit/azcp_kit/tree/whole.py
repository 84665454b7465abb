"""Whether a tar has come to its end: tarfile takes one that was cut between two files for a whole one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from azcp_runtime.contract import PreflightError
from azcp_runtime.contract.image import PREFIX

_END: Final = bytes(1024)
"""Two blocks of nothing."""


def whole(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The same pieces.

    Args:
        chunks: of a tar.

    Raises:
        PreflightError: they end before the tar does; told in the place of a further piece.
    """
    tail = b""
    for chunk in chunks:
        tail = (tail + chunk)[-len(_END) :]
        yield chunk
    if tail != _END:
        raise PreflightError(f"the image's {PREFIX} did not come whole", remedy="is the Docker engine well?")
