"""A generated CycleCloud project on a machine to spoil, with the releases that it downloads made up."""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from azcp_kit.spec.read import parse_job
from azcp_kit.targets.cyclecloud.needs import cyclecloud_problems
from azcp_kit.targets.cyclecloud.project import is_executable, project_files
from azcp_kit.targets.cyclecloud.write import write_folder

from tests.lab.disks import is_root
from tests.lab.throwaway import STANDINS, Throwaway

PROJECT: Final = "/mnt/cluster-init/azcp-llama"
"""Where CycleCloud puts a project on a VM."""

ENROOT: Final = "3.5.0"
PYXIS: Final = "0.20.0"
DEBS: Final = tuple(
    f"enroot{caps}_{ENROOT}-1_{arch}.deb" for arch in ("amd64", "arm64") for caps in ("", "+caps")
)
RPMS: Final = tuple(
    f"enroot{caps}-{ENROOT}-1.el8.{arch}.rpm" for arch in ("x86_64", "aarch64") for caps in ("", "+caps")
)
PACKAGES: Final = DEBS + RPMS
_NO_DIGEST: Final = "0" * 64
_TOOLS: Final = ("mdadm", "mkfs.xfs", "mkfs.ext4", "losetup", "dpkg-deb", "curl", "make")
_PLACES: Final = "/usr/sbin:/usr/bin:/sbin:/bin"


def _lacking() -> str:
    """What this machine lacks to stand for a VM; empty for nothing."""
    if not is_root():
        return "needs root for mounts and loop devices"
    absent = [tool for tool in _TOOLS if shutil.which(tool, path=_PLACES) is None]
    return f"needs {', '.join(absent)}" if absent else ""


needs_vm: Final = pytest.mark.skipif(bool(_lacking()), reason=_lacking())
"""Of tests that run the scripts."""


_JOB: Final = """
name = "llama"
image = "registry.example/llama:1"
source = "https://weights.blob.core.windows.net/models/llama/"
dest = "/mnt/nvme/llama"
nodes = 4
storage.path = "/mnt/nvme"

[cyclecloud]
enroot-version = "{enroot}"
pyxis-version = "{pyxis}"
pyxis-sha256 = "{pyxis_sha256}"
deadline = "{deadline}"
{more}

[cyclecloud.enroot-sha256]
{packages}
"""


@dataclass(frozen=True, slots=True)
class Releases:
    """What a server on loopback has, and where.

    Args:
        url: of the server.
        digests: of its files, by the last part of their path.
    """

    url: str
    digests: Mapping[str, str]


NO_RELEASES: Final = Releases("http://127.0.0.1:9", {})


def job_text(releases: Releases = NO_RELEASES, deadline: str = "1m") -> str:
    """A job.toml of a project that downloads from there."""
    digests = releases.digests
    return _JOB.format(
        enroot=ENROOT,
        pyxis=PYXIS,
        pyxis_sha256=digests.get(f"v{PYXIS}.tar.gz", _NO_DIGEST),
        deadline=deadline,
        more=f'enroot-url = "{releases.url}/enroot"\npyxis-url = "{releases.url}/pyxis"',
        packages="\n".join(f'"{name}" = "{digests.get(name, _NO_DIGEST)}"' for name in PACKAGES),
    )


def install_project(machine: Throwaway, releases: Releases = NO_RELEASES, deadline: str = "1m") -> None:
    """Generate the project and put its specs where CycleCloud puts them."""
    job = parse_job(job_text(releases, deadline), more=cyclecloud_problems)
    write_folder(machine.path(PROJECT), project_files(job), is_executable)


def script(machine: Throwaway, path: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run one, such as ``execute/scripts/20-nvme.sh``, as CycleCloud does."""
    spec, folder, name = path.split("/")
    return machine.run(f"{PROJECT}/specs/{spec}/cluster-init/{folder}/{name}", env=env)


def passed(machine: Throwaway, path: str, **env: str) -> str:
    """The output of one that must succeed."""
    ended = script(machine, path, **env)
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


def failed(machine: Throwaway, path: str, **env: str) -> str:
    """The output of one that must not."""
    ended = script(machine, path, **env)
    assert ended.returncode == 1, ended.stdout
    assert "FAILED: " in ended.stdout
    return ended.stdout


def made_up_package(folder: Path, name: str, version: str = ENROOT) -> bytes:
    """A real Debian package, for every architecture, that holds one script."""
    tree = folder / f"{name}-{version}"
    program = tree / "usr" / "bin" / f"made-up-{name.replace('+', '-')}"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho {version}\n")
    control = tree / "DEBIAN" / "control"
    control.parent.mkdir()
    control.write_text(
        f"Package: {name}\nVersion: {version}-1\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\n"
        "Description: made up\n"
    )
    package = folder / f"{name}-{version}.deb"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "--build", tree, package], check=True, capture_output=True
    )
    return package.read_bytes()


def made_up_pyxis() -> bytes:
    """A source archive that builds, without a compiler, to a file that says for what it was built."""
    makefile = 'spank_pyxis.so:\n\tprintf "plugin %s\\n" "$$CPPFLAGS" >$@\n'
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        info = tarfile.TarInfo(f"pyxis-{PYXIS}/Makefile")
        info.size = len(makefile)
        archive.addfile(info, io.BytesIO(makefile.encode()))
    return buffer.getvalue()


def stand_for_slurm(machine: Throwaway, version: str = "23.11.9") -> None:
    """What the scripts need of an installed Slurm, and tools that the made-up source does not use."""
    machine.stand_in(
        "srun",
        [f'[ "$1" = --version ] && echo "slurm {version}" && exit', "echo --container-image; exit 0"],
    )
    machine.write(f"{STANDINS}/include/slurm/spank.h", "")
    machine.stand_in("gcc", ["exit 1"])
    machine.stand_in("strip", ["exit 1"])
    # Here Slurm may be installed, with files of its own.
    machine.said("rm", "-rf", "/etc/slurm")
    machine.stand_in("systemctl", ['[ "$1" != restart ] || echo "$*" >>/restarts'])


def state(path: Path) -> tuple[int, int, int]:
    """Changes with every writing of a file, and not with reading."""
    found = path.stat()
    return found.st_ino, found.st_mtime_ns, found.st_mode


def sha256(content: bytes) -> str:
    """As sha256sum says it."""
    return hashlib.sha256(content).hexdigest()
