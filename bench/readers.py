"""Ways to read ranges of one blob into page-aligned buffers, each run in a process of its own.

python bench/readers.py NAME URL SIZE_BYTES ROUNDS [CERTIFICATE] prints the CPU and wall seconds as JSON.
"""

from __future__ import annotations

import json
import mmap
import os
import queue
import ssl
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Protocol

from bare_http import HttpReader, MemoryBioStream, connect

RANGE_BYTES: Final = 16 * 1024 * 1024
CONNECTIONS: Final = 8

_POPULATED: Final = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE


class Reader(Protocol):
    """One connection's worth of reading; called from one thread only."""

    def __call__(self, offset_bytes: int, buffer: memoryview, /) -> None:
        """Fill `buffer` from the blob's byte `offset_bytes` on."""


Connect = Callable[[], Reader]
"""Opens one connection."""


def _plain(url: str, _certificate: str) -> Connect:
    return lambda: HttpReader(url, connect(url)[0])


def _memory_bio(url: str, certificate: str) -> Connect:
    context = ssl.create_default_context(cafile=certificate)

    def reader() -> Reader:
        plain, host = connect(url)
        return HttpReader(url, MemoryBioStream(plain, context, host))

    return reader


def _ssl_socket(url: str, certificate: str) -> Connect:
    context = ssl.create_default_context(cafile=certificate)

    def reader() -> Reader:
        plain, host = connect(url)
        return HttpReader(url, context.wrap_socket(plain, server_hostname=host))

    return reader


def _azcp_runtime(url: str, certificate: str) -> Connect:
    from azcp_runtime.azure.account import list_account
    from azcp_runtime.azure.body import BodyReader
    from azcp_runtime.azure.credential import ANONYMOUS, Secret
    from azcp_runtime.azure.retry import Retries, RetryLimits
    from azcp_runtime.source.location import BlobLocation, parse_source

    os.environ["REQUESTS_CA_BUNDLE"] = certificate
    folder, _, name = url.rpartition("/")
    location, secret, limits = parse_source(folder), Secret(ANONYMOUS), RetryLimits(0, 30.0)
    if not isinstance(location, BlobLocation):
        raise TypeError(f"{folder} is no Blob URL")
    blob = next(entry for entry in list_account(location, secret, limits) if entry.name == name.encode())
    bodies = BodyReader(location, secret, limits, Retries(), threading.Event())
    return lambda: lambda offset_bytes, buffer: bodies.read(blob, offset_bytes, buffer)


def _storage_blob(url: str, certificate: str) -> Connect:
    from azure.storage.blob import BlobClient

    client = BlobClient.from_blob_url(url, connection_verify=certificate)

    def read(offset_bytes: int, buffer: memoryview) -> None:
        buffer[:] = client.download_blob(offset=offset_bytes, length=len(buffer)).readall()

    return lambda: read


RANGE_READERS: Final[dict[str, Callable[[str, str], Connect]]] = {
    "plain socket": _plain,
    "MemoryBIO": _memory_bio,
    "ssl recv_into": _ssl_socket,
    "azcp_runtime": _azcp_runtime,
    "storage-blob ranges": _storage_blob,
}


class _BufferFile:
    """What azure-storage-blob's readinto writes to: seekable, over one page-aligned buffer."""

    def __init__(self, size_bytes: int) -> None:
        self._buffer = memoryview(mmap.mmap(-1, size_bytes, flags=_POPULATED))
        self._at = 0

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, _whence: int = 0) -> int:
        self._at = offset % len(self._buffer)
        return offset

    def tell(self) -> int:
        return self._at

    def write(self, data: bytes) -> int:
        self._buffer[self._at : self._at + len(data)] = data
        self._at += len(data)
        return len(data)


def _whole_blob(url: str, certificate: str, rounds: int, *, tuned: bool) -> Callable[[], None]:
    from azure.storage.blob import BlobClient

    sizes = {"max_single_get_size": RANGE_BYTES, "max_chunk_get_size": RANGE_BYTES}
    tuning: dict[str, Any] = {**sizes, "connection_data_block_size": 1024 * 1024} if tuned else {}
    client = BlobClient.from_blob_url(url, connection_verify=certificate, **tuning)
    file = _BufferFile(client.get_blob_properties().size)

    def work() -> None:
        for _ in range(rounds):
            file.seek(0)
            client.download_blob(max_concurrency=CONNECTIONS if tuned else 1).readinto(file)  # type: ignore[arg-type]

    return work


def read_ranges(connected: Connect, buffers: list[memoryview], size_bytes: int, rounds: int) -> None:
    """Read the whole blob `rounds` times, with a thread and a connection for each buffer."""
    offsets: queue.SimpleQueue[int] = queue.SimpleQueue()
    for offset in [*range(0, size_bytes, RANGE_BYTES)] * rounds:
        offsets.put(offset)

    def work(buffer: memoryview) -> None:
        read = connected()
        while not offsets.empty():
            try:
                offset = offsets.get_nowait()
            except queue.Empty:
                return
            read(offset, buffer[: min(RANGE_BYTES, size_bytes - offset)])

    with ThreadPoolExecutor(len(buffers)) as threads:
        for done in [threads.submit(work, buffer) for buffer in buffers]:
            done.result()


def _prepared(name: str, url: str, size_bytes: int, rounds: int, certificate: str) -> Callable[[], None]:
    """The candidate's work, ready to be measured: imported, its first bytes read."""
    if name not in RANGE_READERS:
        return _whole_blob(url, certificate, rounds, tuned=name == "storage-blob tuned")
    connected = RANGE_READERS[name](url, certificate)
    connected()(0, memoryview(bytearray(1)))
    buffers = [memoryview(mmap.mmap(-1, RANGE_BYTES, flags=_POPULATED)) for _ in range(CONNECTIONS)]
    return lambda: read_ranges(connected, buffers, size_bytes, rounds)


def main(name: str, url: str, size_bytes: int, rounds: int, certificate: str = "") -> None:
    """Read with the candidate called `name` and print what it cost."""
    work = _prepared(name, url, size_bytes, rounds, certificate)
    before, started_s = os.times(), time.monotonic()
    work()
    after = os.times()
    cpu_s = after.user + after.system - before.user - before.system
    print(json.dumps({"cpu_s": cpu_s, "wall_s": time.monotonic() - started_s}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), *sys.argv[5:6])
