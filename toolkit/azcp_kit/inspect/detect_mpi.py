"""Every MPI of the image, by each way that leads to one: PATH, ENV, the loader's cache, a known folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from azcp_runtime.contract.image import PREFIX

from azcp_kit.inspect import mpi_library
from azcp_kit.inspect.facts import Mpi, MpiKind
from azcp_kit.inspect.files import ImageTree
from azcp_kit.inspect.libraries import Libraries
from azcp_kit.inspect.search_path import folders

LAUNCHERS: Final = ("mpirun", "mpiexec", "mpiexec.hydra", "mpirun.openmpi", "mpirun.mpich")
MOST_LIBRARIES: Final = 16
"""Each is read as a whole, and a hostile image could name any number."""

_VARIABLES: Final = (
    "OPAL_PREFIX",
    "MPI_HOME",
    "MPI_ROOT",
    "OMPI_HOME",
    "OPENMPI_HOME",
    "HPCX_MPI_DIR",
    "HPCX_DIR",
    "I_MPI_ROOT",
)
_FOLDERS: Final = (
    "/opt/hpcx/ompi",
    "/usr/local/mpi",
    "/usr/local",
    "/usr/lib64/openmpi",
    "/usr/lib64/mpich",
    "/usr/lib64/mpi/gcc/openmpi4",
    "/usr/lib64/mpi/gcc/mpich",
    "/opt/openmpi",
    "/opt/ompi",
    "/opt/mpich",
    "/opt/amazon/openmpi",
    "/opt/intel/oneapi/mpi/latest",
)
_MOFED_FOLDER: Final = "/usr/mpi/gcc"
_BELOW_PREFIX: Final = (
    "lib",
    "lib64",
    "lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
    "lib/release",
    "intel64/lib/release",
    "ompi/lib",
)
_LIBRARY_FOLDERS: Final = frozenset({"lib", "lib64"})
_WITHIN_LIBRARY_FOLDER: Final = frozenset({"x86_64-linux-gnu", "aarch64-linux-gnu", "release", "debug"})
_MARKS_OF_LAUNCHERS: Final = (
    (("orte", "prte", "openmpi"), frozenset({MpiKind.OPEN_MPI, MpiKind.HPC_X})),
    (("hydra", "mpich"), frozenset({MpiKind.MPICH, MpiKind.INTEL})),
)


@dataclass(frozen=True)
class _Launcher:
    path: str
    target: str
    prefix: str


def detect_mpis(libraries: Libraries, env: Mapping[str, str]) -> tuple[Mpi, ...]:
    """The MPIs, those on PATH first; each library once, with all the ways that lead to it."""
    launchers = tuple(_launchers(libraries.tree, env))
    ways: dict[str, dict[str, None]] = {}
    for library, way in _libraries(libraries, env, launchers):
        # What was injected before is ours, and no MPI of the base.
        if not library.startswith(f"{PREFIX}/"):
            ways.setdefault(library, {})[way] = None
    found = [
        _mpi(libraries.tree, library, tuple(ways[library]), env, launchers)
        for library in list(ways)[:MOST_LIBRARIES]
    ]
    known = {mpi.prefix for mpi in found}
    alone = {launcher.prefix: _alone(launcher) for launcher in reversed(launchers)}
    return (*found, *(mpi for prefix, mpi in reversed(alone.items()) if prefix not in known))


def _launchers(tree: ImageTree, env: Mapping[str, str]) -> Iterator[_Launcher]:
    seen: set[str] = set()
    for folder in folders(env):
        for name in LAUNCHERS:
            path = f"{folder}/{name}"
            if not tree.is_program(path):
                continue
            target = tree.resolve(path) or path
            if target not in seen and not target.startswith(f"{PREFIX}/"):
                seen.add(target)
                yield _Launcher(path, target, target.rpartition("/")[0].removesuffix("/bin"))


def _libraries(
    libraries: Libraries, env: Mapping[str, str], launchers: tuple[_Launcher, ...]
) -> Iterator[tuple[str, str]]:
    """Each library, links resolved, with the way that leads to it."""
    prefixes = [(launcher.prefix, f"PATH {launcher.path}") for launcher in launchers]
    prefixes += [(env[name], f"ENV {name}") for name in _VARIABLES if env.get(name, "").startswith("/")]
    places = [(f"{prefix}/{below}", way) for prefix, way in prefixes for below in _BELOW_PREFIX]
    places += [(folder, "ENV LD_LIBRARY_PATH") for folder in folders(env, "LD_LIBRARY_PATH")]
    for folder, way in places:
        yield from ((path, way) for path in _in_folder(libraries, folder))
    for name in mpi_library.NAMES:
        yield from ((path, "ld.so.cache") for path in libraries.cached(name))
    for prefix in _known_folders(libraries.tree):
        for below in _BELOW_PREFIX:
            yield from ((path, f"folder {prefix}") for path in _in_folder(libraries, f"{prefix}/{below}"))


def _known_folders(tree: ImageTree) -> tuple[str, ...]:
    """The folders to look into; MOFED puts the version into the name."""
    names = (name for name in tree.names(_MOFED_FOLDER) if name.startswith("openmpi-"))
    return (*_FOLDERS, *(f"{_MOFED_FOLDER}/{name}" for name in names))


def _in_folder(libraries: Libraries, folder: str) -> tuple[str, ...]:
    versioned = libraries.existing(f"{folder}/{name}" for name in mpi_library.NAMES)
    return versioned or libraries.existing([f"{folder}/{mpi_library.PLAIN_NAME}"])


def _mpi(
    tree: ImageTree,
    library: str,
    ways: tuple[str, ...],
    env: Mapping[str, str],
    launchers: tuple[_Launcher, ...],
) -> Mpi:
    kind, version = mpi_library.identify(tree.read(library, mpi_library.LIMIT_BYTES))
    if kind is MpiKind.OPEN_MPI and _is_of_hpcx(tree, library, env):
        kind = MpiKind.HPC_X
    prefix = prefix_of(library)
    own = (one.path for one in launchers if one.prefix == prefix and _may_start(one.target, kind))
    return Mpi(kind, version, prefix, library, next(own, ""), ways)


def prefix_of(library: str) -> str:
    """The installation of a library: for /usr/lib64/openmpi/lib/libmpi.so.40 it is /usr/lib64/openmpi."""
    folder = library.rpartition("/")[0]
    above, _, name = folder.rpartition("/")
    if name in _WITHIN_LIBRARY_FOLDER:
        above, _, name = above.rpartition("/")
    return above if name in _LIBRARY_FOLDERS else folder


def _is_of_hpcx(tree: ImageTree, library: str, env: Mapping[str, str]) -> bool:
    roots = (tree.resolve(env[name]) for name in ("HPCX_MPI_DIR", "HPCX_DIR") if name in env)
    return "hpcx" in library.lower() or any(library.startswith(f"{root}/") for root in roots if root)


def _may_start(target: str, kind: MpiKind) -> bool:
    name = target.rpartition("/")[2]
    return all(kind in kinds for marks, kinds in _MARKS_OF_LAUNCHERS if any(mark in name for mark in marks))


def _alone(launcher: _Launcher) -> Mpi:
    return Mpi(MpiKind.UNKNOWN, "", launcher.prefix, "", launcher.path, (f"PATH {launcher.path}",))
