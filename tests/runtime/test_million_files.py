"""A million files: what rank 0 needs for their listing, and every other rank when it has arrived."""

from __future__ import annotations

import json
import subprocess
import sys

FILES = 1_000_000
MIB = 1 << 20
# In a process of its own, for its peak is what is asked. The entries come one by one, as they are listed.
MEASURED = """
import json, resource, sys
from azcp_runtime.source.listing import Entry, decode_listing, make_listing
from azcp_runtime.source.patterns import chosen

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

files, before = int(sys.argv[1]), peak()
entries = (
    Entry(b"models/llama-%03d/shard-%05d/model-%07d.safetensors" % (i // 3500, i // 100, i), 1 << 20,
          f'"0x8DC{i:013X}"', 1_700_000_000 + i, i.to_bytes(16))
    for i in range(files)
)
listing = make_listing(entries)
told = {"files": len(listing), "listed": peak() - before}
if sys.argv[2] == "chosen":
    listing = chosen(listing, [b"*[02468].safetensors"], [])
    told |= {"left": len(listing), "chosen": peak() - before}
else:
    sent = listing.encoded()
    told |= {"sent": len(sent), "encoded": peak() - before}
    del listing
    told |= {"arrived": len(decode_listing(sent)), "decoded": peak() - before}
print(json.dumps(told))
"""


def measured(what: str) -> dict[str, int]:
    """Bytes at the peak of each step, above those of the bare process."""
    command = [sys.executable, "-c", MEASURED, str(FILES), what]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    told: dict[str, int] = json.loads(done.stdout)
    return told


def test_a_listing_takes_no_object_for_a_file_and_is_sent_as_columns() -> None:
    told = measured("sent")
    assert (told["files"], told["arrived"]) == (FILES, FILES)
    assert told["listed"] < 256 * MIB
    assert told["sent"] < 128 * MIB
    assert max(told["encoded"], told["decoded"]) < 448 * MIB


def test_patterns_take_less_than_a_second_listing() -> None:
    told = measured("chosen")
    assert told["left"] == FILES // 2
    assert told["chosen"] < told["listed"] + 128 * MIB
