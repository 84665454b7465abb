"""The C library and its version, from the library's own bytes: os-release says nothing of what is in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from azcp_kit.inspect.elf import HEADER_BYTES, elf_arch
from azcp_kit.inspect.facts import Libc, LibcKind
from azcp_kit.inspect.files import ImageTree
from azcp_kit.inspect.libraries import Libraries

LOADERS: Final[Mapping[str, str]] = MappingProxyType(
    {"amd64": "/lib64/ld-linux-x86-64.so.2", "arm64": "/lib/ld-linux-aarch64.so.1"}
)
"""Where every program of that architecture looks for glibc's loader; the path is compiled into it."""

MUSL_LOADERS: Final = ("/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-aarch64.so.1")
LIBC: Final = "libc.so.6"
PLATFORM: Final = ("libgcc_s.so.1", "libz.so.1")
"""What wheels expect of each platform beside the C library, and that ours need."""

LIBC_LIMIT_BYTES: Final = 32 * 2**20

_BANNER: Final = re.compile(rb"GNU C Library [^\n\0]{0,200}?version (\d{1,4}\.\d{1,4})")
_MUSL_VERSION: Final = re.compile(rb"\0(1\.\d{1,2}\.\d{1,2})\0")
_PROGRAMS: Final = ("/bin/sh", "/bin/busybox", "/usr/bin/env", "/sbin/ldconfig")


def detect_libc(libraries: Libraries, entrypoint: tuple[str, ...] = ()) -> Libc:
    """The C library that a dynamically linked program would get, and what it is compiled for."""
    tree = libraries.tree
    loader_arch, loader = _loader(tree)
    musl = next((path for path in MUSL_LOADERS if arch_of(tree, path)), "")
    programs = (musl, *_PROGRAMS, *entrypoint[:1], *libraries.find(LIBC))
    arch = loader_arch or next(filter(None, (arch_of(tree, path) for path in programs)), "")
    path, version = _glibc(libraries, arch)
    # Debian can hold a musl loader for cross-compiling, and Alpine a shim under the name of glibc's:
    # it takes glibc's own loader and its banner together to outweigh musl.
    if version and (loader or not musl):
        return Libc(LibcKind.GLIBC, version, path, loader, arch)
    if musl:
        return Libc(LibcKind.MUSL, _musl_version(tree, musl), "", musl, arch)
    return Libc(LibcKind.NONE, "", "", loader, arch)


def detect_lacking(libraries: Libraries) -> tuple[str, ...]:
    """The platform's libraries that a program of the image would not find."""
    return tuple(name for name in PLATFORM if not libraries.find(name))


def arch_of(tree: ImageTree, path: str) -> str:
    """What the program or library is compiled for; empty for what is none."""
    return elf_arch(tree.read(path, HEADER_BYTES))


def glibc_version(content: bytes) -> str:
    """The version in a glibc's banner, such as 2.36; empty for another library."""
    match = _BANNER.search(content)
    return match[1].decode() if match else ""


def _loader(tree: ImageTree) -> tuple[str, str]:
    found = ((arch, path) for arch, path in LOADERS.items() if arch_of(tree, path) == arch)
    return next(found, ("", ""))


def _glibc(libraries: Libraries, arch: str) -> tuple[str, str]:
    for path in libraries.find(LIBC):
        content = libraries.tree.read(path, LIBC_LIMIT_BYTES)
        # A 32-bit library may lie beside the one that counts.
        if elf_arch(content[:HEADER_BYTES]) in ("", arch) and (version := glibc_version(content)):
            return path, version
    return "", ""


def _musl_version(tree: ImageTree, loader: str) -> str:
    match = _MUSL_VERSION.search(tree.read(loader, LIBC_LIMIT_BYTES))
    return match[1].decode() if match else ""
