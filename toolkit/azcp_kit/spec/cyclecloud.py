"""The [cyclecloud] table of a job.toml: what the nodes of a Slurm cluster get at each start."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from azcp_kit.spec.durations import parse_duration
from azcp_kit.spec.names import object_label
from azcp_kit.spec.reader import Reader

_DEADLINE_S: Final = 1800
"""A scheduler that compiles and a node that starts beside it; the first start of a cluster takes minutes."""

_ENROOT_URL: Final = "https://github.com/NVIDIA/enroot/releases/download"
_PYXIS_URL: Final = "https://github.com/NVIDIA/pyxis/archive/refs/tags"

_VERSION: Final = re.compile(r"[0-9]+(\.[0-9]+){1,3}", re.ASCII)
_SHA256: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_PACKAGE: Final = re.compile(
    r"enroot(-hardened)?(\+caps)?(_[0-9.]+-[0-9]+_(amd64|arm64)\.deb|-[0-9.]+-[0-9]+(\.[a-z]+[0-9]+)?\.(x86_64|aarch64)\.rpm)",
    re.ASCII,
)
# These paths come to stand in fstab, plugstack.conf and enroot.conf, none of which can quote.
_PATH: Final = re.compile(r"(/[A-Za-z0-9_][A-Za-z0-9_.-]*)+", re.ASCII)
_URL: Final = re.compile(r"https?://[A-Za-z0-9.:-]+(/[A-Za-z0-9._~%+-]+)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class CycleCloud:
    """What the project holds.

    Args:
        project: its name.
        version: of the project itself.
        enroot_version: of the release.
        enroot_packages: SHA-256 of each package, by the name of its file in the release.
        enroot_url: folder of the releases.
        pyxis_version: of the release.
        pyxis_sha256: of its source archive.
        pyxis_url: folder of the archives.
        nvme: where the local disks are mounted.
        shared: folder of root's that scheduler and nodes share.
        deadline_s: how long a node waits for the scheduler.
    """

    project: str
    version: str
    enroot_version: str
    enroot_packages: Mapping[str, str]
    enroot_url: str
    pyxis_version: str
    pyxis_sha256: str
    pyxis_url: str
    nvme: str
    shared: str
    deadline_s: int


def read_cyclecloud(table: Reader, name: str) -> CycleCloud:
    """The table; versions and digests stay empty where they are absent, as other targets need none.

    Args:
        table: the reader of it.
        name: of the job.
    """
    cyclecloud = CycleCloud(
        project=table.text("project", f"azcp-{name}", check=object_label),
        version=table.text("version", "1.0.0", check=_version),
        enroot_version=table.text("enroot-version", check=_version),
        enroot_packages=table.texts("enroot-sha256", _package, _sha256),
        enroot_url=table.text("enroot-url", _ENROOT_URL, check=_url),
        pyxis_version=table.text("pyxis-version", check=_version),
        pyxis_sha256=table.text("pyxis-sha256", check=_sha256),
        pyxis_url=table.text("pyxis-url", _PYXIS_URL, check=_url),
        nvme=table.text("nvme", "/mnt/nvme", check=_path),
        shared=table.text("shared", "/sched", check=_path),
        deadline_s=table.parsed("deadline", _DEADLINE_S, parse_duration),
    )
    table.finish()
    return cyclecloud


def _version(text: str) -> str:
    return "" if _VERSION.fullmatch(text) else "is no version such as 3.5.0"


def _sha256(text: str) -> str:
    return "" if _SHA256.fullmatch(text) else "is no SHA-256: 64 hexadecimal digits, in lower case"


def _package(text: str) -> str:
    return (
        ""
        if _PACKAGE.fullmatch(text)
        else "is no package of an enroot release, such as enroot_3.5.0-1_amd64.deb"
    )


def _path(text: str) -> str:
    if _PATH.fullmatch(text) and ".." not in text:
        return ""
    return "is no absolute path of letters, digits and _.- alone, which fstab and Slurm's files need"


def _url(text: str) -> str:
    return "" if _URL.fullmatch(text) else "is no plain http or https address without a slash at its end"
