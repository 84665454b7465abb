"""What is known of a base image: all that plan, render and verify need, and nothing of it secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class LibcKind(StrEnum):
    """The C library that the image's programs are linked with."""

    GLIBC = "glibc"
    MUSL = "musl"
    NONE = "none"


class MpiKind(StrEnum):
    """An MPI implementation."""

    OPEN_MPI = "Open MPI"
    HPC_X = "HPC-X"
    """Open MPI as it comes in NVIDIA's bundle; the version is Open MPI's."""

    MPICH = "MPICH"
    INTEL = "Intel MPI"
    UNKNOWN = "unknown"
    """A launcher without a library that tells what it is."""


class PackageKind(StrEnum):
    """The package manager that the image holds."""

    APT = "apt"
    DNF = "dnf"
    MICRODNF = "microdnf"
    TDNF = "tdnf"
    YUM = "yum"
    ZYPPER = "zypper"
    APK = "apk"
    NONE = "none"


@dataclass(frozen=True)
class Identity:
    """Which image it is, and what it claims to run on."""

    reference: str
    id: str
    digests: tuple[str, ...]
    """Repository digests; empty for an image that came from no registry."""

    size_bytes: int
    layers: tuple[str, ...]
    os: str
    arch: str
    """As in the config: amd64, arm64, ..."""

    variant: str


@dataclass(frozen=True)
class System:
    """The distribution, from os-release; strings are empty where it is silent."""

    id: str
    like: tuple[str, ...]
    version: str
    codename: str
    name: str


@dataclass(frozen=True)
class Packages:
    """The package manager, and where it is told to fetch from."""

    kind: PackageKind
    path: str
    sources: tuple[str, ...]
    """Files that name repositories, the distribution's own and others."""

    has_lists: bool
    """Whether apt's package lists are in the image."""


@dataclass(frozen=True)
class Libc:
    """The C library and the program loader; strings are empty for what is not there."""

    kind: LibcKind
    version: str
    path: str
    loader: str
    arch: str
    """What the loader, the library or else a program of the image is compiled for, by its ELF header."""


@dataclass(frozen=True)
class Config:
    """What the image's config says about starting it; secrets are hidden."""

    user: str
    entrypoint: tuple[str, ...]
    cmd: tuple[str, ...]
    onbuild: tuple[str, ...]
    healthcheck: tuple[str, ...]
    workdir: str
    shell: tuple[str, ...]
    stop_signal: str
    volumes: tuple[str, ...]
    ports: tuple[str, ...]
    env: Mapping[str, str]
    labels: Mapping[str, str]


@dataclass(frozen=True)
class Account:
    """The user of the config as the image's passwd knows it."""

    uid: int | None
    """None where the user is a name that passwd does not have."""

    name: str
    """Empty for a number without an entry."""

    home: str


@dataclass(frozen=True)
class Python:
    """A Python interpreter of the image."""

    path: str
    target: str
    """The file that the path leads to."""

    version: str
    is_venv: bool
    is_first_on_path: bool


@dataclass(frozen=True)
class Mpi:
    """An MPI of the image."""

    kind: MpiKind
    version: str
    prefix: str
    library: str
    launcher: str
    """The mpirun on PATH that is this one's; empty if none is."""

    found_by: tuple[str, ...]


@dataclass(frozen=True)
class EnvLeak:
    """A variable of the image that an MPI or a Python other than the image's own would obey."""

    name: str
    value: str
    effect: str


@dataclass(frozen=True)
class Ssh:
    """OpenSSH of the image; strings are empty for what is not there."""

    server: str
    version: str
    client: str


@dataclass(frozen=True)
class Verbs:
    """RDMA user space; strings are empty for what is not there."""

    library: str
    version: str
    """Of rdma-core, which the library's file name carries."""

    providers: tuple[str, ...]
    rdmacm: str
    mofed: str


@dataclass(frozen=True)
class Gpu:
    """Versions of the GPU libraries; empty where there are none."""

    cuda: str
    rocm: str
    nccl: str


@dataclass(frozen=True)
class ImageFacts:
    """Everything that was found out about one image."""

    identity: Identity
    system: System
    packages: Packages
    libc: Libc
    lacking: tuple[str, ...]
    """Libraries of every manylinux platform (PEP 600) that the injected programs need and the image lacks."""

    config: Config
    account: Account
    shells: tuple[str, ...]
    pythons: tuple[Python, ...]
    mpis: tuple[Mpi, ...]
    leaks: tuple[EnvLeak, ...]
    ssh: Ssh
    verbs: Verbs
    gpu: Gpu
    parent: str
    """What /opt is: by its owner and mode, a COPY to / keeps them or does not."""

    is_injected: bool
    """Whether there is an /opt/azcp already, ours or somebody's."""
