"""What a listing of many blobs takes of rank 0's memory, and what stays of it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Final

from azcp_runtime.source.listing import Entry, make_listing

BLOBS: Final = 100_000
# Five million blobs must fit into a node with room to spare.
PEAK_BYTES_PER_BLOB: Final = 640
KEPT_BYTES_PER_BLOB: Final = 200


def many() -> Iterator[Entry]:
    """Entries as the account's listing gives them, one after the other."""
    for number in range(BLOBS):
        name = f"datasets/part-{number % 1000:04d}/shard-{number:09d}.tar".encode()
        etag = f'"0x8DAAAAAAAA{number:06d}"'
        yield Entry(name, number, etag=etag, modified=1_700_000_000 + number, md5=bytes(16), tier="Hot")


def test_a_listing_takes_a_bounded_number_of_bytes_for_each_blob() -> None:
    tracemalloc.start()
    try:
        listing = make_listing(many())
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(listing) == BLOBS
    assert kept < KEPT_BYTES_PER_BLOB * BLOBS
    assert peak < PEAK_BYTES_PER_BLOB * BLOBS
