"""What nodes without a container need of azcp-kit: the tree of an injected image, at its own place."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from azcp_kit.payload.assemble import Recipe, assemble
from azcp_kit.payload.pins import named
from azcp_runtime.contract.image import PREFIX

from tests.lab.bases import cache_folder
from tests.lab.interpreter import interpreter_archive
from tests.lab.slurm import Cluster

_ARCHES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


def assembled_tree(folder: Path) -> Path:
    """The code of this checkout and all that it stands on, in a folder that stands for PREFIX."""
    machine = subprocess.run(["uname", "-m"], check=True, capture_output=True, text=True).stdout.strip()
    recipe = Recipe(
        arch=_ARCHES[machine],
        python=named("python", interpreter_archive(cache_folder())),
        with_mpi=True,
        settings={"ssh": "bundled", "rdma": "none"},
        others=(),
        wheelhouse=None,
        cache=cache_folder() / "payload",
    )
    vendor, own = folder / "vendor", folder / "own"
    assemble(recipe, vendor, own)
    tree = vendor / PREFIX.lstrip("/")
    shutil.copytree(own / PREFIX.lstrip("/"), tree, dirs_exist_ok=True, symlinks=True)
    return tree


def put_tree(cluster: Cluster, tree: Path, *nodes: str) -> None:
    """Have it at PREFIX on these nodes, or on all; what else is in the folder above is hidden there."""
    above = str(Path(PREFIX).parent)
    seen = layer_of(cluster, tree) / PREFIX.lstrip("/")
    for node in nodes or cluster.nodes:
        for argv in (
            ("mount", "-n", "-t", "tmpfs", "tmpfs", above),
            ("mkdir", PREFIX),
            ("mount", "-n", "--bind", str(seen), PREFIX),
        ):
            done = cluster.run(*argv, on=node)
            assert done.returncode == 0, done.stderr


def layer_of(cluster: Cluster, tree: Path) -> Path:
    """A folder in which the tree is at its own place: the machines see no other folder than theirs."""
    layer = cluster.shared / ".azcp"
    place = layer / PREFIX.lstrip("/")
    if not place.exists():
        place.parent.mkdir(parents=True)
        shutil.copytree(tree, place, symlinks=True, copy_function=os.link)
    return layer
