"""Images in memory: files, links and folders by path, and the few bytes that detection goes by."""

from __future__ import annotations

import struct
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from azcp_kit.inspect.facts import Identity, ImageFacts
from azcp_kit.inspect.files import Entry, ImageTree, Kind
from azcp_kit.inspect.gather import gather
from azcp_kit.inspect.stored import StoredImage

MACHINES: Final = {"amd64": 62, "arm64": 183, "386": 3}
LOADERS: Final = {"amd64": "/lib64/ld-linux-x86-64.so.2", "arm64": "/lib/ld-linux-aarch64.so.1"}
IDENTITY: Final = Identity("team/base:1", "sha256:1", (), 20 * 2**30, ("sha256:2",), "linux", "amd64", "")


@dataclass(frozen=True)
class Link:
    """A symbolic link."""

    target: str


Content = bytes | str | Link


class MemoryFiles:
    """An `ImageFiles` of a mapping from paths to contents; folders follow from the paths."""

    def __init__(self, files: Mapping[str, Content]) -> None:
        self.files = files
        self.asked: list[str] = []

    def entry(self, path: str) -> Entry | None:
        """What is there, a link not followed."""
        self.asked.append(path)
        content = self.files.get(path)
        if isinstance(content, Link):
            return Entry(Kind.LINK, target=content.target)
        if content is not None:
            return Entry(Kind.FILE, len(content), is_executable=True)
        return Entry(Kind.FOLDER) if any(name.startswith(f"{path}/") for name in self.files) else None

    def read(self, path: str, limit_bytes: int) -> bytes:
        """The first bytes of a file."""
        content = self.files[path]
        assert not isinstance(content, Link)
        return (content.encode() if isinstance(content, str) else content)[:limit_bytes]

    def header(self, path: str) -> tarfile.TarInfo | None:
        """Everything is root's, and the modes are the usual ones."""
        found = self.entry(path)
        if found is None:
            return None
        header = tarfile.TarInfo(path)
        header.type = tarfile.DIRTYPE if found.kind is Kind.FOLDER else tarfile.REGTYPE
        header.mode = 0o755
        return header

    def names(self, path: str) -> tuple[str, ...]:
        """The names in a folder."""
        below = (name.removeprefix(f"{path}/") for name in self.files if name.startswith(f"{path}/"))
        return tuple({name.partition("/")[0] for name in below})


def tree(files: Mapping[str, Content]) -> ImageTree:
    """The files as the image's programs would see them."""
    return ImageTree(MemoryFiles(files))


def elf(arch: str = "amd64") -> bytes:
    """The header of a program."""
    return b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", 3, MACHINES[arch])


def glibc(version: str, folder: str = "/lib/x86_64-linux-gnu", arch: str = "amd64") -> dict[str, Content]:
    """A glibc and its loader."""
    banner = f"\0GNU C Library (Some Distribution {version}-1) stable release version {version}.\n\0"
    return {f"{folder}/libc.so.6": elf(arch) + banner.encode(), LOADERS[arch]: elf(arch)}


def musl() -> dict[str, Content]:
    """A musl, which is its own loader."""
    return {"/lib/ld-musl-x86_64.so.1": elf() + b"\0musl libc\0001.2.5\0"}


def ld_cache(libraries: Mapping[str, str], before: bytes = b"") -> bytes:
    """A loader's cache; `before` is the older table that glibc used to put first."""
    strings, start = b"", 48 + 24 * len(libraries)
    entries = b""
    for name, path in libraries.items():
        at = start + len(strings)
        entries += struct.pack("<iIIIQ", 0x303, at, at + len(name) + 1, 0, 0)
        strings += name.encode() + b"\0" + path.encode() + b"\0"
    header = struct.pack("<20sII20x", b"glibc-ld.so.cache1.1", len(libraries), len(strings))
    return before + header + entries + strings


def facts_of(
    files: Mapping[str, Content],
    config: Mapping[str, object] | None = None,
    identity: Identity = IDENTITY,
) -> ImageFacts:
    """The facts of an image that has these files and this config."""
    return gather(StoredImage(identity, config or {}), MemoryFiles(files))
