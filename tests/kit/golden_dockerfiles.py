"""Writes the Dockerfiles under golden/ again for `make examples`; tests compare with them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from azcp_kit.image.dockerfile import dockerfile
from azcp_kit.image.plan import Mpi, Rdma, Ssh, Wishes, plan_injection
from azcp_kit.inspect.facts import ImageFacts

from tests.kit.image_facts import bare, debian, verbs

FOLDER: Final = Path(__file__).with_name("golden")
PACKAGES: Final = Wishes(ssh=Ssh.PACKAGE, rdma=Rdma.PACKAGE)

CASES: Final[Mapping[str, tuple[ImageFacts, Wishes]]] = MappingProxyType(
    {
        "copy-alone": (debian(verbs()), Wishes()),
        "lacking-libraries": (bare(), Wishes(rdma=Rdma.NONE)),
        "rdma-bundled": (debian(), Wishes(rdma=Rdma.BUNDLED)),
        "mpi-source": (debian(verbs()), Wishes(mpi=Mpi.SOURCE, builder="mirror.example:5000/debian:11-slim")),
        "mpi-source-without-rdma": (debian(verbs()), Wishes(mpi=Mpi.SOURCE, rdma=Rdma.NONE)),
        "mpi-image": (debian(verbs()), Wishes(mpi=Mpi.IMAGE, mpi_image="team/mpi:4.1.6")),
        "packages-as-user": (debian(user="1000:100"), PACKAGES),
        "packages-as-root": (debian(user="root"), PACKAGES),
        "two-platforms": (debian(verbs()), Wishes(arches=("amd64", "arm64"))),
        "secrets": (debian(), Wishes(mpi=Mpi.SOURCE, secrets=("apt_password",))),
    }
)


def text_of(name: str) -> str:
    """The Dockerfile of that case as it is rendered today."""
    facts, wishes = CASES[name]
    return dockerfile(plan_injection(facts, wishes), facts)


def path_of(name: str) -> Path:
    """The file that holds it."""
    return FOLDER / f"{name}.Dockerfile"


def main() -> None:
    """Write them."""
    for name in CASES:
        path_of(name).write_text(text_of(name), encoding="utf-8")
        print(path_of(name).relative_to(Path.cwd()))


if __name__ == "__main__":
    main()
