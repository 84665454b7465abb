"""The Dockerfile's text from the plan: pure, and every value in it checked for what it may be."""

from __future__ import annotations

import re
from typing import Final

from azcp_runtime.contract import UsageError
from azcp_runtime.contract.image import PREFIX

from azcp_kit.image.plan import InjectPlan
from azcp_kit.inspect.detect_parent import ABSENT, AS_MADE
from azcp_kit.inspect.facts import ImageFacts
from azcp_kit.render import render
from azcp_kit.shown import shown

# distribution/reference: domain, path, tag, digest; what is no reference cannot stand in a FROM line.
_REFERENCE: Final = re.compile(
    r"(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d+)?/)?"
    r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*"
    r"(?::[\w][\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?",
    re.IGNORECASE | re.ASCII,
)
_USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\$?(?::[A-Za-z0-9_][A-Za-z0-9_.-]*)?")
_ROOT: Final = {"", "0", "root", "0:0", "root:root", "root:0", "0:root"}

_OWN_SOURCES: Final = (
    "/etc/apt/sources.list.d/debian.sources",
    "/etc/apt/sources.list.d/ubuntu.sources",
    "/etc/apt/sources.list",
)


def dockerfile(plan: InjectPlan, facts: ImageFacts) -> str:
    """The Dockerfile for the context that azcp_kit.image.context lays out.

    Raises:
        UsageError: a name is no image reference, or the base's user cannot be restored.
    """
    for option, reference in (
        ("--base", plan.base),
        ("--builder", plan.builder),
        ("--mpi-image", plan.mpi_image),
    ):
        check_reference(option, reference)
    return render(
        "image/Dockerfile.j2",
        base=plan.base,
        builder=plan.builder,
        mpi=plan.mpi.value,
        mpi_image=plan.mpi_image,
        rdma=plan.rdma.value,
        packages=plan.packages,
        lacking=plan.lacking,
        folder="" if facts.parent in (ABSENT, AS_MADE) else PREFIX.lstrip("/"),
        own_sources=own_sources(facts.packages.sources) if plan.packages else "",
        user_before=user_to_restore(plan.user) if plan.packages else "",
        mounts="".join(f"--mount=type=secret,id={name} " for name in plan.secrets),
        arches=plan.arches,
        arch_folder=plan.arches[0] if len(plan.arches) == 1 else "${TARGETARCH}",
    )


def user_to_restore(user: str) -> str:
    """The USER line's value after a step that needed root; empty where root is the user anyway.

    Raises:
        UsageError: it is no user that a USER line can hold.
    """
    if user in _ROOT:
        return ""
    if not _USER.fullmatch(user):
        raise UsageError(f"the base's USER is {user!r}, which no Dockerfile can restore")
    return user


def own_sources(files: tuple[str, ...]) -> str:
    """Apt's file with the distribution's own sources.

    Raises:
        UsageError: the base has none that we know.
    """
    for path in _OWN_SOURCES:
        if path in files:
            return path
    raise UsageError(
        "the base does not tell its distribution's own package sources",
        cause=f"none of {', '.join(_OWN_SOURCES)} is there",
        remedy="use --ssh bundled and --rdma bundled, which need no package manager",
    )


def check_reference(option: str, reference: str) -> None:
    """Refuse what no engine would take as a name.

    Raises:
        UsageError: it is no image reference.
    """
    if reference and not _REFERENCE.fullmatch(reference):
        raise UsageError(
            f"{option} {shown(reference)} is no image reference",
            remedy="write [HOST/]NAME[:TAG], the name in lower case",
        )
