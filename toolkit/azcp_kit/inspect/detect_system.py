"""The distribution, its package manager and its shells, from the image's own files and never from its tag."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from azcp_kit.inspect.facts import PackageKind, Packages, System
from azcp_kit.inspect.files import ImageTree

OS_RELEASE: Final = ("/etc/os-release", "/usr/lib/os-release")
SHELLS: Final = ("/bin/sh", "/bin/bash")
APT_LISTS: Final = "/var/lib/apt/lists"

# Where two are installed, the first is the one that the distribution means to be used.
_MANAGERS: Final = (
    (PackageKind.APT, "/usr/bin/apt-get"),
    (PackageKind.TDNF, "/usr/bin/tdnf"),
    (PackageKind.DNF, "/usr/bin/dnf"),
    (PackageKind.MICRODNF, "/usr/bin/microdnf"),
    (PackageKind.YUM, "/usr/bin/yum"),
    (PackageKind.ZYPPER, "/usr/bin/zypper"),
    (PackageKind.APK, "/sbin/apk"),
    (PackageKind.APK, "/usr/bin/apk"),
)
_RPM_SOURCES: Final = ("/etc/yum.repos.d",)
_SOURCES: Final[Mapping[PackageKind, tuple[str, ...]]] = MappingProxyType(
    {
        PackageKind.APT: ("/etc/apt/sources.list", "/etc/apt/sources.list.d"),
        PackageKind.TDNF: _RPM_SOURCES,
        PackageKind.DNF: _RPM_SOURCES,
        PackageKind.MICRODNF: _RPM_SOURCES,
        PackageKind.YUM: _RPM_SOURCES,
        PackageKind.ZYPPER: ("/etc/zypp/repos.d",),
        PackageKind.APK: ("/etc/apk/repositories",),
    }
)
_SOURCE_ENDINGS: Final = (".list", ".sources", ".repo")
_ASSIGNMENT: Final = re.compile(r"([A-Z][A-Z0-9_]*)=(.*)")


def parse_os_release(text: str) -> Mapping[str, str]:
    """The assignments of an os-release file, quotes taken off."""
    matches = (_ASSIGNMENT.fullmatch(line.strip()) for line in text.splitlines())
    return {match[1]: match[2].strip().strip("\"'") for match in matches if match}


def detect_system(tree: ImageTree) -> System:
    """The distribution as os-release names it."""
    path = next((path for path in OS_RELEASE if tree.exists(path)), OS_RELEASE[0])
    values = parse_os_release(tree.text(path))
    return System(
        id=values.get("ID", ""),
        like=tuple(values.get("ID_LIKE", "").split()),
        version=values.get("VERSION_ID", ""),
        codename=values.get("VERSION_CODENAME", ""),
        name=values.get("PRETTY_NAME") or values.get("NAME", ""),
    )


def detect_packages(tree: ImageTree) -> Packages:
    """The package manager and the files that name its repositories."""
    for kind, path in _MANAGERS:
        if tree.is_program(path):
            has_lists = kind is PackageKind.APT and any(
                name.endswith(("_Packages", "_InRelease", "_Packages.lz4")) for name in tree.names(APT_LISTS)
            )
            return Packages(kind, path, _sources(tree, kind), has_lists)
    return Packages(PackageKind.NONE, "", (), has_lists=False)


def detect_shells(tree: ImageTree) -> tuple[str, ...]:
    """The shells that a RUN line or a script could use."""
    return tuple(path for path in SHELLS if tree.is_program(path))


def _sources(tree: ImageTree, kind: PackageKind) -> tuple[str, ...]:
    found: list[str] = []
    for path in _SOURCES.get(kind, ()):
        if tree.is_folder(path):
            found += [f"{path}/{name}" for name in tree.names(path) if name.endswith(_SOURCE_ENDINGS)]
        elif tree.exists(path):
            found.append(path)
    return tuple(found)
