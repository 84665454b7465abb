"""The build context: a folder made for it alone, and the same folder as a tar that is equal byte for byte."""

from __future__ import annotations

import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from azcp_kit.image.dockerfile import dockerfile
from azcp_kit.image.plan import InjectPlan, Mpi
from azcp_kit.inspect.facts import ImageFacts
from azcp_kit.payload.archives import obtain
from azcp_kit.payload.assemble import Recipe, assemble
from azcp_kit.payload.components import Component
from azcp_kit.payload.tree import EPOCH_S, settle
from azcp_kit.render import templates_folder


@dataclass(frozen=True, slots=True)
class Supplies:
    """Where the parts come from: a cache for downloads, and a wheelhouse where there is no index."""

    cache: Path
    wheelhouse: Path | None


def lay_out(plan: InjectPlan, facts: ImageFacts, supplies: Supplies, folder: Path) -> tuple[Component, ...]:
    """Fill an empty folder with the Dockerfile and all that it copies; the components in it.

    Raises:
        AzcpError: a part cannot be had or laid out.
    """
    (folder / "Dockerfile").write_text(dockerfile(plan, facts), encoding="utf-8")
    if plan.builder or plan.packages:
        shutil.copytree(templates_folder() / "image/build", folder / "build")
        for script in (folder / "build").iterdir():
            script.chmod(0o755)
    sources = _copy_sources(plan, supplies, folder)
    components = list(sources)
    for arch in plan.arches:
        recipe = Recipe(
            arch=arch,
            python=plan.pythons[arch],
            with_mpi=plan.mpi is Mpi.WHEEL,
            settings={"ssh": plan.ssh.value, "rdma": plan.rdma.value, "mpi": plan.mpi.value},
            others=sources,
            wheelhouse=supplies.wheelhouse,
            cache=supplies.cache,
        )
        components += assemble(recipe, folder / f"vendor-{arch}", folder / f"own-{arch}")
    settle(folder)
    return tuple(dict.fromkeys(components))


def write_tar(folder: Path, file: IO[bytes]) -> None:
    """The folder as a tar with root as the owner of everything, in one order and with one date."""
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(folder.rglob("*")):
            tar.add(path, str(path.relative_to(folder)), recursive=False, filter=_as_root)


def _as_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = EPOCH_S
    return member


def _copy_sources(plan: InjectPlan, supplies: Supplies, folder: Path) -> list[Component]:
    """The archives that a stage of the build compiles, checked here, and what else stages add."""
    found = []
    for archive in (plan.openmpi, plan.ucx, plan.rdma_core):
        if archive is None:
            continue
        (folder / "archives").mkdir(exist_ok=True)
        shutil.copyfile(obtain(archive, supplies.cache), folder / "archives" / f"{archive.name}.tar")
        found.append(Component(archive.name, archive.version, "source", archive.sha256, archive.file_name))
    if plan.mpi is Mpi.IMAGE:
        found.append(Component("openmpi", "", "image", origin=plan.mpi_image))
    found += [Component(package, "", "package") for package in plan.packages]
    found += [Component(library, "", "image", origin=plan.builder) for library in plan.lacking]
    return found
