"""Bases on which the injected programs cannot run, refused with the reason before anything is built."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from azcp_runtime.contract import PreflightError
from azcp_runtime.contract.image import PREFIX

from azcp_kit.inspect.detect_libc import LOADERS
from azcp_kit.inspect.detect_parent import ABSENT, PARENT
from azcp_kit.inspect.facts import ImageFacts, LibcKind
from azcp_kit.shown import shown

MINIMUM_GLIBC: Final = (2, 28)
"""What the wheels of Open MPI and cryptography are built for (manylinux_2_28): RHEL 8 and Debian 10 on."""


def refuse(facts: ImageFacts, *, arch: str = "", minimum_glibc: tuple[int, int] = MINIMUM_GLIBC) -> None:
    """Return if the base can be injected.

    Args:
        facts: the base's.
        arch: the architecture that is wanted; empty for the image's own.
        minimum_glibc: the oldest that the programs to be injected run on.

    Raises:
        PreflightError: it cannot, with every reason.
    """
    reasons = refusals(facts, arch=arch, minimum_glibc=minimum_glibc)
    if reasons:
        raise PreflightError(
            f"{shown(facts.identity.reference)} cannot be injected",
            cause="; ".join(reason.what for reason in reasons),
            remedy=reasons[0].remedy,
        )


def refusals(
    facts: ImageFacts, *, arch: str = "", minimum_glibc: tuple[int, int] = MINIMUM_GLIBC
) -> tuple[PreflightError, ...]:
    """Every reason against the base, the one that the others may follow from first."""
    return (
        *_platform_reasons(facts, arch),
        *_libc_reasons(facts, minimum_glibc),
        *_injected_reasons(facts),
    )


def _platform_reasons(facts: ImageFacts, arch: str) -> Iterator[PreflightError]:
    claimed, compiled = facts.identity.arch, facts.libc.arch
    known = " and ".join(LOADERS)
    if facts.identity.os != "linux":
        yield PreflightError(f"its system is {shown(facts.identity.os)}", remedy="use a Linux image")
    if claimed not in LOADERS:
        yield PreflightError(
            f"its architecture is {shown(claimed)}",
            remedy=f"use an image for {known}, which there are builds for",
        )
    if compiled and compiled != claimed:
        yield PreflightError(
            f"its config says {shown(claimed)}, and its programs are compiled for {compiled}",
            remedy="pull or build the image again for one platform",
        )
    if arch and claimed != arch:
        yield PreflightError(
            f"it is for {shown(claimed)}, and {shown(arch)} is asked for",
            remedy=f"pull it for linux/{shown(arch)}, or ask for what it is",
        )


def _injected_reasons(facts: ImageFacts) -> Iterator[PreflightError]:
    if facts.parent != ABSENT and not facts.parent.startswith("a folder"):
        yield PreflightError(
            f"its {PARENT} is {facts.parent}",
            cause="a COPY would replace it, or follow it to where programs do not expect us",
            remedy=f"use a base whose {PARENT} is a folder, or has none",
        )
    if facts.is_injected:
        yield PreflightError(
            f"it has an {PREFIX} already",
            cause="an earlier injection, or files that would be mixed with ours and run as ours",
            remedy="inject into the image that it was made from",
        )


def _libc_reasons(facts: ImageFacts, minimum: tuple[int, int]) -> Iterator[PreflightError]:
    libc = facts.libc
    needed = ".".join(map(str, minimum))
    if libc.kind is LibcKind.MUSL:
        yield PreflightError(
            "its C library is musl, and the MPI and its Python need glibc",
            remedy=f"use a base with glibc {needed} or later, such as Debian, Ubuntu, Rocky Linux or Wolfi",
        )
        return
    if libc.kind is LibcKind.NONE:
        yield PreflightError(
            "it has no glibc where programs look for one",
            remedy=f"use a base with glibc {needed} or later, of distroless ones the variant base or cc",
        )
        return
    if glibc_numbers(libc.version) < minimum:
        yield PreflightError(
            f"its glibc is {libc.version}, and {needed} is needed",
            remedy="use a later release of the distribution",
        )
    if not libc.loader:
        expected = LOADERS.get(libc.arch, " or ".join(LOADERS.values()))
        yield PreflightError(
            f"its glibc has no loader at {expected}",
            remedy="use a base in which programs of other distributions can start",
        )


def glibc_numbers(version: str) -> tuple[int, ...]:
    """2.36 as numbers, since 2.4 is older than 2.36; empty, and so older than all, for what is no version."""
    parts = version.split(".")
    return tuple(map(int, parts)) if all(part.isascii() and part.isdigit() for part in parts) else ()
