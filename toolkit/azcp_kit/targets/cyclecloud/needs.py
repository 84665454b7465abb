"""What a job.toml must say of a CycleCloud project; versions and digests are never guessed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Final

from azcp_kit.spec.cyclecloud import CycleCloud
from azcp_kit.spec.job import JobSpec
from azcp_kit.spec.problems import Problem

_RELEASES: Final = "see the project's releases"
_SUM: Final = "what sha256sum says of the file that you checked"


def cyclecloud_problems(job: JobSpec) -> list[Problem]:
    """All that is missing or contradicts itself."""
    cyclecloud = job.cyclecloud
    required = (
        ("enroot-version", cyclecloud.enroot_version, _RELEASES),
        ("pyxis-version", cyclecloud.pyxis_version, _RELEASES),
        ("pyxis-sha256", cyclecloud.pyxis_sha256, _SUM),
    )
    found = [
        Problem(f"cyclecloud.{key}", "is missing", remedy) for key, value, remedy in required if not value
    ]
    found += _packages(cyclecloud)
    nvme, shared = PurePosixPath(cyclecloud.nvme), PurePosixPath(cyclecloud.shared)
    if nvme.is_relative_to(shared) or shared.is_relative_to(nvme):
        found.append(
            Problem("cyclecloud.nvme", f"{nvme} and the shared folder {shared} lie one inside the other")
        )
    return found


def _packages(cyclecloud: CycleCloud) -> Iterable[Problem]:
    """Of each platform both packages, of the one version."""
    key = "cyclecloud.enroot-sha256"
    names = cyclecloud.enroot_packages
    if not names:
        yield Problem(key, "is missing", 'write "FILE OF THE RELEASE" = "its SHA-256" per package')
    for name in names:
        if cyclecloud.enroot_version and _version_of(name) != cyclecloud.enroot_version:
            yield Problem(f"{key}.{name}", f"is not of the version {cyclecloud.enroot_version}")
        if (other := _counterpart(name)) not in names:
            yield Problem(key, f"has {name} without {other}", "users import images with both")


def _version_of(name: str) -> str:
    """3.5.0 of enroot_3.5.0-1_amd64.deb and of enroot-3.5.0-1.el8.x86_64.rpm."""
    return _after_name(name).partition("-")[0]


def _counterpart(name: str) -> str:
    """The package with the capabilities for the one without, and the other way round."""
    rest = _after_name(name)
    stem = name.removesuffix(rest)
    bare, separator = stem[:-1], stem[-1]
    other = bare.removesuffix("+caps") if bare.endswith("+caps") else f"{bare}+caps"
    return f"{other}{separator}{rest}"


def _after_name(name: str) -> str:
    return name[next(at for at, character in enumerate(name) if character.isdigit()) :]
