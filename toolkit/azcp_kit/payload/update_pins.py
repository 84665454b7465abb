"""Writes the digests of pins.toml anew from its addresses: ``python -m azcp_kit.payload.update_pins``.

``--set openmpi=4.1.9=URL`` gives a version its address, or adds it; only that one is downloaded then. Of a
name that has one archive per architecture, ``--set python/arm64=3.14.1=URL``.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from azcp_runtime.contract import AzcpError, UsageError

from azcp_kit.payload.archives import digest_of, fetch
from azcp_kit.payload.pins import PINS, Archive

_SET: Final = re.compile(
    r"(?P<name>[a-z-]+)(?:/(?P<arch>[a-z0-9]+))?=(?P<version>[^=\s\"]+)=(?P<url>https?://[^\s\"]+)"
)
_FIELD: Final = re.compile(r'^(\w+) = "([^"]*)"', re.MULTILINE)
_URL: Final = re.compile(r'^url = "([^"]*)"', re.MULTILINE)
_TABLE: Final = "\n[["
_DIGEST: Final = "sha256 = "


def main() -> None:
    """Download, tell what each digest is and was, and write the file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--set", action="append", default=[], dest="entries", metavar="NAME=VERSION=URL")
    parser.add_argument("--file", type=Path, default=PINS)
    options = parser.parse_args()
    try:
        update(options.file, options.entries)
    except AzcpError as error:
        sys.stderr.write(f"update_pins: {error}\n")
        sys.exit(error.exit_code)


def update(file: Path, entries: Iterable[str]) -> None:
    """Bring the file up to date.

    Raises:
        UsageError: an entry is none, or of a name that has no pins.
        DownloadError: an archive cannot be had.
    """
    text = file.read_text(encoding="utf-8")
    chosen: set[str] = set()
    for entry in entries:
        text, url = with_entry(text, entry)
        chosen.add(url)
    digests: dict[str, str] = {}
    for archive in _archives(text):
        if not chosen or archive.location in chosen:
            digests[archive.location] = found = _digest(archive)
            change = "as before" if found == archive.sha256 else f"before: {archive.sha256 or 'none'}"
            print(f"{archive.name} {archive.version} sha256 {found} ({change})")
    file.write_text(with_digests(text, digests), encoding="utf-8")


def with_entry(text: str, entry: str) -> tuple[str, str]:
    """The text in which that version has that address, and the address.

    A version that is not there yet goes behind the others of its name: the first stays the default.

    Raises:
        UsageError: it is no entry, or of a name that has no pins.
    """
    match = _SET.fullmatch(entry)
    if match is None:
        raise UsageError(f"--set {entry}: write NAME=VERSION=URL or NAME/ARCH=VERSION=URL")
    wanted = {key: value for key, value in match.groupdict().items() if value}
    tables = text.split(_TABLE)
    places = [place for place, table in enumerate(tables) if table.startswith(f"{wanted['name']}]]")]
    if not places:
        raise UsageError(f"--set {entry}: there are no pins of {wanted['name']}")
    same = [place for place in places if _is_of(tables[place], wanted)]
    if same:
        tables[same[0]] = _URL.sub(lambda _: f'url = "{wanted["url"]}"', tables[same[0]])
    else:
        tables[places[-1]] = _followed_by(tables[places[-1]], wanted)
    return _TABLE.join(tables), wanted["url"]


def with_digests(text: str, digests: Mapping[str, str]) -> str:
    """The text with these digests beside their addresses; every other line stays."""
    lines, url = text.splitlines(keepends=True), ""
    for number, line in enumerate(lines):
        if match := _URL.match(line):
            url = match[1]
        elif line.startswith(_DIGEST) and url in digests:
            lines[number] = f'{_DIGEST}"{digests[url]}"\n'
    return "".join(lines)


def _is_of(table: str, wanted: Mapping[str, str]) -> bool:
    fields = dict(_FIELD.findall(table))
    return (fields["version"], fields.get("arch")) == (wanted["version"], wanted.get("arch"))


def _followed_by(table: str, wanted: Mapping[str, str]) -> str:
    """The table and behind it a new one, before the comment that belongs to the next."""
    lines = table.splitlines(keepends=True)
    end = 1 + next(number for number, line in enumerate(lines) if line.startswith(_DIGEST))
    fields = "".join(f'{key} = "{wanted[key]}"\n' for key in ("version", "arch", "url") if key in wanted)
    lines.insert(end, f'{_TABLE}{wanted["name"]}]]\n{fields}{_DIGEST}""\n')
    return "".join(lines)


def _archives(text: str) -> list[Archive]:
    tables: dict[str, list[dict[str, str]]] = tomllib.loads(text)
    return [
        Archive(name, row["version"], row["url"], row["sha256"])
        for name, rows in tables.items()
        for row in rows
    ]


def _digest(archive: Archive) -> str:
    with tempfile.TemporaryDirectory() as work:
        target = Path(work, "archive")
        fetch(archive, target)
        return digest_of(target)


if __name__ == "__main__":
    main()
