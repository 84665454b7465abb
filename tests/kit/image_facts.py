"""Facts of the kinds of bases that plan and render tell apart, gathered from images in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from azcp_kit.inspect.facts import ImageFacts

from tests.kit.image_tree import IDENTITY, Content, Link, facts_of, glibc

FOLDER: Final = "/usr/lib/x86_64-linux-gnu"
DEBIAN: Final[Mapping[str, Content]] = {
    **glibc("2.36"),
    "/etc/os-release": 'ID=debian\nVERSION_ID="12"\n',
    "/usr/bin/apt-get": b"",
    "/etc/apt/sources.list.d/debian.sources": "",
    "/etc/apt/sources.list.d/vendor.list": "",
    f"{FOLDER}/libgcc_s.so.1": b"",
    f"{FOLDER}/libz.so.1": b"",
}
SSHD: Final[Mapping[str, Content]] = {"/usr/sbin/sshd": b"\0OpenSSH_9.2p1\0"}
DIGEST: Final = f"registry.example/team/base@sha256:{'0123456789abcdef' * 4}"


def verbs(release: str = "44.0", provider: str = "mlx5") -> dict[str, Content]:
    """A verbs library of that release of rdma-core with one provider."""
    name = f"libibverbs.so.1.14.{release}"
    return {
        f"{FOLDER}/libibverbs.so.1": Link(name),
        f"{FOLDER}/{name}": b"",
        f"{FOLDER}/libibverbs/lib{provider}-rdmav34.so": b"",
    }


def debian(
    more: Mapping[str, Content] | None = None, *, user: str = "", onbuild: tuple[str, ...] = ()
) -> ImageFacts:
    """A Debian from a registry, with more files or another config."""
    identity = replace(IDENTITY, reference="team/base:1", digests=(DIGEST,))
    config = {"User": user, "OnBuild": list(onbuild)}
    return facts_of({**DEBIAN, **(more or {})}, config, identity)


def bare() -> ImageFacts:
    """A C library in an otherwise empty image that came from no registry."""
    return facts_of(glibc("2.31"))


def other_distribution() -> ImageFacts:
    """One with another package manager than apt."""
    return facts_of({**glibc("2.34", "/usr/lib64"), "/usr/bin/microdnf": b"", "/usr/lib64/libz.so.1": b""})
