"""Decides what is injected and how, from the base's facts and the user's wishes; nothing is touched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from azcp_runtime.contract import UsageError

from azcp_kit.inspect.facts import ImageFacts, PackageKind
from azcp_kit.payload.pins import Archive, named, pinned

DEFAULT_BUILDER: Final = "debian:11-slim"
"""Where MPI is compiled and RDMA libraries come from: the oldest glibc that is still maintained."""

OLDEST_VERBS: Final = 35
"""The rdma-core release from which on libmlx5 has what UCX of the wheel links with (MLX5_1.19)."""

_SSH_PACKAGES: Final = ("openssh-server",)
_RDMA_PACKAGES: Final = ("libibverbs1", "ibverbs-providers", "librdmacm1")


class Mpi(StrEnum):
    """Where Open MPI and UCX come from."""

    WHEEL = "wheel"
    SOURCE = "source"
    IMAGE = "image"


class Ssh(StrEnum):
    """Which sshd azcp-sshd starts."""

    AUTO = "auto"
    BASE = "base"
    PACKAGE = "package"
    BUNDLED = "bundled"


class Rdma(StrEnum):
    """Where libibverbs and its providers come from."""

    AUTO = "auto"
    BASE = "base"
    PACKAGE = "package"
    BUNDLED = "bundled"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the command line asked for; empty strings stand for the default.

    Args:
        openmpi, ucx: a pinned version, or LOCATION@sha256:DIGEST; for MPI from source only.
        rdma_core: the same, for bundled RDMA only.
        mpi_image: an image that holds /opt/openmpi and /opt/ucx; for `image` only.
        python: an interpreter archive, LOCATION@sha256:DIGEST.
        arches: Docker's names; empty for the base's own.
        builder: an image with apt, for what must be compiled or is not in the base.
        secrets: ids of files that the builder's steps may read at /run/secrets/ID; for buildx only.
    """

    mpi: Mpi = Mpi.WHEEL
    openmpi: str = ""
    ucx: str = ""
    rdma_core: str = ""
    mpi_image: str = ""
    python: str = ""
    ssh: Ssh = Ssh.AUTO
    rdma: Rdma = Rdma.AUTO
    arches: tuple[str, ...] = ()
    builder: str = DEFAULT_BUILDER
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InjectPlan:
    """All decisions; `reasons` says why, line by line."""

    base: str
    arches: tuple[str, ...]
    user: str
    mpi: Mpi
    openmpi: Archive | None
    ucx: Archive | None
    rdma_core: Archive | None
    mpi_image: str
    pythons: Mapping[str, Archive]
    ssh: Ssh
    rdma: Rdma
    package_kind: PackageKind
    packages: tuple[str, ...]
    lacking: tuple[str, ...]
    builder: str
    secrets: tuple[str, ...]
    reasons: tuple[str, ...]


def plan_injection(facts: ImageFacts, wishes: Wishes) -> InjectPlan:
    """What will be done to this base.

    Raises:
        UsageError: wishes that exclude each other, or that this base cannot fulfil; all of them at once.
    """
    ssh, ssh_reason = _ssh(facts, wishes.ssh)
    rdma, rdma_reason = _rdma(facts, wishes.rdma)
    packages = _packages(facts, ssh, rdma)
    bundled = rdma is Rdma.BUNDLED
    _refuse_contradictions(facts, wishes, packages, rdma)
    arches = tuple(dict.fromkeys(wishes.arches)) or (facts.identity.arch,)
    source = wishes.mpi is Mpi.SOURCE
    return InjectPlan(
        base=_pinned_base(facts),
        arches=arches,
        user=facts.config.user,
        mpi=wishes.mpi,
        openmpi=_archive("openmpi", wishes.openmpi) if source else None,
        ucx=_archive("ucx", wishes.ucx) if source else None,
        rdma_core=_archive("rdma-core", wishes.rdma_core) if bundled else None,
        mpi_image=wishes.mpi_image,
        pythons={arch: _python(wishes, arch) for arch in arches},
        ssh=ssh,
        rdma=rdma,
        package_kind=facts.packages.kind,
        packages=packages,
        lacking=facts.lacking,
        builder=wishes.builder if wishes.mpi is not Mpi.WHEEL or bundled or facts.lacking else "",
        secrets=wishes.secrets,
        reasons=(_mpi_reason(facts, wishes), ssh_reason, rdma_reason, _copy_reason(facts, packages)),
    )


def plan_lines(plan: InjectPlan) -> list[str]:
    """The plan for people: what, and why."""
    return [f"inject {' and '.join(plan.arches)} into {plan.base}", *plan.reasons]


def _ssh(facts: ImageFacts, wish: Ssh) -> tuple[Ssh, str]:
    if wish in (Ssh.AUTO, Ssh.BUNDLED):
        why = "as any uid, without a shell, PAM, passwd entry or writable root"
        return Ssh.BUNDLED, f"sshd: bundled (asyncssh), which works {why}"
    version = facts.ssh.version or "of unknown version"
    if wish is Ssh.PACKAGE and not facts.ssh.server:
        return Ssh.BASE, "sshd: OpenSSH from the base's package manager, as asked"
    return Ssh.BASE, f"sshd: the base's {facts.ssh.server} ({version}), as asked"


def _rdma(facts: ImageFacts, wish: Rdma) -> tuple[Rdma, str]:
    verbs = facts.verbs
    fits = has_verbs(facts)
    found = f"{verbs.library} {verbs.version}, providers {', '.join(verbs.providers) or 'none'}"
    found = found if verbs.library else "no verbs library"
    if wish is Rdma.NONE:
        return Rdma.NONE, "rdma: none, as asked; the fabric is TCP"
    if wish is Rdma.PACKAGE and fits:
        return Rdma.BASE, f"rdma: nothing to install, the base has {found}"
    if wish is not Rdma.AUTO:
        return wish, f"rdma: {wish}, as asked (the base has {found})"
    if fits:
        return Rdma.BASE, f"rdma: the base's ({found}), so that library and provider are of one release"
    needed = f"UCX needs rdma-core {OLDEST_VERBS} with libmlx5"
    return Rdma.BUNDLED, f"rdma: compiled for /opt/azcp/rdma; {needed}, the base has {found}"


def has_verbs(facts: ImageFacts) -> bool:
    """Whether the base's verbs library and providers are ones that UCX can load."""
    release = facts.verbs.version.partition(".")[0]
    is_new = not release.isdigit() or int(release) >= OLDEST_VERBS  # MOFED counts otherwise, and is newer
    return bool(facts.verbs.library) and "mlx5" in " ".join(facts.verbs.providers) and is_new


def _packages(facts: ImageFacts, ssh: Ssh, rdma: Rdma) -> tuple[str, ...]:
    openssh = _SSH_PACKAGES if ssh is Ssh.BASE and not facts.ssh.server else ()
    return openssh + (_RDMA_PACKAGES if rdma is Rdma.PACKAGE else ())


def _refuse_contradictions(facts: ImageFacts, wishes: Wishes, packages: tuple[str, ...], rdma: Rdma) -> None:
    source = wishes.mpi is Mpi.SOURCE
    kind = facts.packages.kind
    problems = [
        problem
        for is_wrong, problem in (
            ((wishes.openmpi or wishes.ucx) and not source, "--openmpi and --ucx need --mpi source"),
            (wishes.rdma_core and rdma is not Rdma.BUNDLED, "--rdma-core needs --rdma bundled"),
            (wishes.mpi is Mpi.IMAGE and not wishes.mpi_image, "--mpi image needs --mpi-image"),
            (wishes.mpi_image and wishes.mpi is not Mpi.IMAGE, "--mpi-image needs --mpi image"),
            (
                "@" in wishes.python and len(set(wishes.arches)) > 1,
                "one --python archive cannot serve two platforms",
            ),
            (wishes.ssh is Ssh.BASE and not facts.ssh.server, "--ssh base: the base has no sshd"),
            (rdma is Rdma.BASE and not has_verbs(facts), "--rdma base: the base has none that UCX can load"),
            (packages and kind is not PackageKind.APT, f"packages are installed by apt, the base has {kind}"),
            (facts.config.onbuild, "the base has ONBUILD triggers, which any build from it would run"),
        )
        if is_wrong
    ]
    if problems:
        about_the_base = any("the base" in problem for problem in problems)
        remedy = "azcp-kit inspect tells what the base has" if about_the_base else ""
        raise UsageError("; ".join(problems), remedy=remedy)


def _archive(name: str, wish: str) -> Archive:
    return named(name, wish) if wish else pinned(name)


def _pinned_base(facts: ImageFacts) -> str:
    # An image that came from no registry has no digest; verify compares its layers instead.
    identity = facts.identity
    return identity.digests[0] if identity.digests else identity.reference


def _python(wishes: Wishes, arch: str) -> Archive:
    return named("python", wishes.python, arch) if wishes.python else pinned("python", arch=arch)


def _mpi_reason(facts: ImageFacts, wishes: Wishes) -> str:
    others = ", ".join(f"{mpi.kind} {mpi.version}".strip() for mpi in facts.mpis)
    beside = f", beside the base's {others}, which stays untouched" if others else ""
    return f"mpi: Open MPI and UCX from {wishes.mpi}{beside}"


def _copy_reason(facts: ImageFacts, packages: tuple[str, ...]) -> str:
    lacking = (
        f"; {' and '.join(facts.lacking)}, which the base lacks, from the builder" if facts.lacking else ""
    )
    if not packages:
        return f"layers: COPY alone, nothing of the base is run{lacking}"
    return f"layers: {', '.join(packages)} from the base's own package manager, then COPY{lacking}"
