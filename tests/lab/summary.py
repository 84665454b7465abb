"""The summary lines on standard output, held to their exact form and order."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

SECONDS: Final = r"T=\d+\.\d\ds"
RATE: Final = r"BW=\d+\.\d\d [KMGT]?b/s"

LIST: Final = re.compile(rf"\[list\] (\d+) files, (\d+) bytes {SECONDS}")
DIFF: Final = re.compile(rf"\[diff\] (\d+) to transfer \((\d+) peer, (\d+) azure\), (\d+) skipped {SECONDS}")
DOWNLOAD: Final = re.compile(rf"\[download\] (\d+) bytes {SECONDS} {RATE}")
BCAST: Final = re.compile(rf"\[bcast\] (\d+) shards (\d+) bytes {SECONDS} {RATE}")
VERIFY: Final = re.compile(r"\[verify\] .*")
FILELIST: Final = re.compile(
    rf"\[filelist\] (?:wrote (\d+) entries|skipped \(no --save-filelist\)) {SECONDS}"
)
RETRIES: Final = re.compile(r"\[cluster\] retries: (.*) across \d+ downloaders?")
TOTAL: Final = re.compile(rf"\[total\] {SECONDS}")

ORDER: Final = (LIST, DIFF, DOWNLOAD, BCAST, VERIFY, FILELIST, RETRIES, TOTAL)
OPTIONAL: Final = (VERIFY, RETRIES)


@dataclass(frozen=True)
class Summary:
    """What the lines say; `verify` and `retries` are empty where their line is absent."""

    files: int
    bytes: int
    to_transfer: int
    peer: int
    azure: int
    skipped: int
    downloaded_bytes: int
    filelist_entries: int | None
    verify: str
    retries: str


def parse_summary(stdout: str) -> Summary:
    """The summary, once every line of `stdout` is one of its lines, in order."""
    lines = stdout.splitlines()
    found: dict[re.Pattern[str], re.Match[str]] = {}
    for pattern in ORDER:
        match = pattern.fullmatch(lines[0]) if lines else None
        assert match or pattern in OPTIONAL, f"expected {pattern.pattern}\n{stdout}"
        if match:
            found[pattern] = match
            del lines[0]
    assert not lines, f"unexpected on standard output: {lines}"
    entries = found[FILELIST][1]
    diff = [int(number) for number in found[DIFF].groups()]
    return Summary(
        files=int(found[LIST][1]),
        bytes=int(found[LIST][2]),
        to_transfer=diff[0],
        peer=diff[1],
        azure=diff[2],
        skipped=diff[3],
        downloaded_bytes=int(found[DOWNLOAD][1]),
        filelist_entries=int(entries) if entries else None,
        verify=found[VERIFY][0] if VERIFY in found else "",
        retries=found[RETRIES][1] if RETRIES in found else "",
    )
