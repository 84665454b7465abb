"""Which archives may go into an image: pins.toml, and what the user names instead."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from azcp_runtime.contract import UsageError

PINS: Final = Path(__file__).with_name("pins.toml")
"""The file of the pins."""

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_VERSION: Final = re.compile(r"\d+\.\d+(?:\.\d+)?(?:[a-z]+\d+)?")


@dataclass(frozen=True, slots=True)
class Archive:
    """One archive, by what is in it rather than where it lies.

    Args:
        name: python, openmpi, ucx or rdma-core.
        version: as its publisher counts.
        location: an https or http address, or a path.
        sha256: of the archive, 64 lower-case hex digits.
    """

    name: str
    version: str
    location: str
    sha256: str

    @property
    def is_remote(self) -> bool:
        """Whether it must be downloaded."""
        return urlsplit(self.location).scheme in {"http", "https"}

    @property
    def file_name(self) -> str:
        """The last part of its location."""
        return urlsplit(self.location).path.rpartition("/")[2] if self.is_remote else Path(self.location).name

    @property
    def shown_location(self) -> str:
        """Its location for messages: a query may be a signature."""
        return self.location.partition("?")[0] if self.is_remote else self.location


def pinned(name: str, version: str = "", arch: str = "") -> Archive:
    """The pin of that version, or the default one.

    Raises:
        UsageError: there is none; it names those that there are.
    """
    rows = [row for row in _rows(name) if row.get("arch", arch) == arch]
    for row in rows:
        if version in ("", row["version"]):
            return Archive(name, row["version"], row["url"], row["sha256"])
    known = ", ".join(row["version"] for row in rows) or "none"
    raise UsageError(
        f"there is no pin for {name} {version}{f' on {arch}' if arch else ''} (pinned: {known})",
        remedy=f"name an archive: --{name} URL-OR-PATH@sha256:DIGEST",
    )


def named(name: str, text: str, arch: str = "") -> Archive:
    """What the user wrote: a pinned version, or LOCATION@sha256:DIGEST.

    Raises:
        UsageError: no digest, a digest that is none, or a location that is none.
    """
    location, separator, digest = text.rpartition("@sha256:")
    if not separator:
        if _VERSION.fullmatch(text):
            return pinned(name, text, arch)
        raise UsageError(
            f"--{name} {text} has no digest",
            remedy="append @sha256:DIGEST (sha256sum tells it), so that nothing else is ever taken",
        )
    if not _SHA256.fullmatch(digest.lower()):
        raise UsageError(f"--{name}: {digest!r} is no sha256", remedy="it has 64 hex digits")
    archive = Archive(name, "", location, digest.lower())
    _check_location(archive)
    return replace(archive, version=version_in(archive.file_name))


def version_in(file_name: str) -> str:
    """The version that a file's name tells, or nothing."""
    found = re.search(r"\d+\.\d+(?:\.\d+)?(?:rc\d+)?", file_name)
    return found.group() if found else ""


def _check_location(archive: Archive) -> None:
    try:
        parts = urlsplit(archive.location)
    except ValueError as error:
        raise UsageError(f"--{archive.name} is given no address: {error}") from error
    if parts.username or parts.password:
        raise UsageError(
            f"--{archive.name}: an address must not hold a password",
            remedy=f"download it, and name the file: --{archive.name} PATH@sha256:{archive.sha256}",
        )
    if parts.scheme not in {"", "http", "https"} or not archive.file_name:
        raise UsageError(
            f"--{archive.name} {archive.shown_location} names no file; http, https and paths are known"
        )


def _rows(name: str) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = tomllib.loads(PINS.read_text(encoding="utf-8")).get(name, [])
    return rows
