"""(f) What an injection adds, and its time without the base: lay /opt/azcp out, build two layers."""

from __future__ import annotations

import io
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from azcp_kit.engine import connected
from azcp_kit.image.context import write_tar
from azcp_kit.payload.assemble import Recipe, assemble
from azcp_kit.payload.pins import named
from azcp_runtime.contract import PreflightError
from table import Table, at_most

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.lab.bases import cache_folder
from tests.lab.interpreter import interpreter_archive

_MIB: Final = 1 << 20
_AIM_S: Final = 60.0
_AIM_MIB: Final = 110.0
_BLOCK: Final = 512
_DOCKERFILE: Final = "FROM scratch\nCOPY vendor/ /\nCOPY own/ /\n"


def measure(*, quick: bool = False) -> list[Table]:
    """One injection from an empty cache, one from a full one; `quick` leaves the first out."""
    interpreter = interpreter_archive(cache_folder())
    with tempfile.TemporaryDirectory(prefix="azcp-bench-") as name:
        work, cache = Path(name), Path(name, "cache")
        rounds = ["wheels kept from before"] if quick else ["empty cache", "wheels kept from before"]
        rows = [_round(what, interpreter, cache, work / str(number)) for number, what in enumerate(rounds)]
        tree = work / str(len(rounds) - 1)
        sizes = _sizes(tree)
    return [
        Table(
            "(f) time of an injection without the base",
            ("round", "lay out s", "build s", "total s", "aim"),
            tuple(rows),
            ("the build copies two layers onto an empty image through the Docker API",),
        ),
        Table("(f) what is added, on disk in blocks of 512 bytes", ("part", "MiB", "aim"), tuple(sizes)),
    ]


def _round(what: str, interpreter: str, cache: Path, folder: Path) -> tuple[str, ...]:
    folder.mkdir(parents=True)
    started_s = time.monotonic()
    recipe = Recipe(
        arch="amd64",
        python=named("python", interpreter),
        with_mpi=True,
        settings={"ssh": "bundled", "rdma": "base", "mpi": "wheel"},
        others=(),
        wheelhouse=None,
        cache=cache,
    )
    assemble(recipe, folder / "vendor", folder / "own")
    laid_out_s = time.monotonic() - started_s
    built_s = _build(folder)
    if built_s is None:
        return what, f"{laid_out_s:.1f}", "no engine", f"{laid_out_s:.1f}", at_most(laid_out_s, _AIM_S, " s")
    total_s = laid_out_s + built_s
    return what, f"{laid_out_s:.1f}", f"{built_s:.1f}", f"{total_s:.1f}", at_most(total_s, _AIM_S, " s")


def _build(folder: Path) -> float | None:
    (folder / "Dockerfile").write_text(_DOCKERFILE, encoding="ascii")
    started_s = time.monotonic()
    with tempfile.TemporaryFile() as file:
        write_tar(folder, file)
        file.seek(0)
        try:
            with connected() as engine:
                image, _ = engine.client.images.build(
                    fileobj=io.BufferedReader(file.raw), custom_context=True, nocache=True, rm=True
                )
                built_s = time.monotonic() - started_s
                engine.client.images.remove(str(image.id), force=True)
        except PreflightError:
            return None
    return built_s


def _sizes(folder: Path) -> list[tuple[str, ...]]:
    stand = folder / "vendor/opt/azcp"
    parts = {f"/opt/azcp/{path.name}": _on_disk(path) for path in sorted(stand.iterdir())}
    parts["the runtime, its commands and settings"] = _on_disk(folder / "own/opt/azcp")
    total = sum(parts.values())
    rows = [(part, f"{size / _MIB:.1f}", "") for part, size in parts.items()]
    return [*rows, ("all", f"{total / _MIB:.1f}", at_most(total / _MIB, _AIM_MIB, " MiB"))]


def _on_disk(path: Path) -> int:
    return sum(
        Path(root, name).lstat().st_blocks * _BLOCK for root, _, names in os.walk(path) for name in names
    )
