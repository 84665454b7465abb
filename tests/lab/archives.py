"""Source archives for the builds of the tests, from the configured package index."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

from azcp_kit.payload.archives import digest_of

# rdma-core's own Python bindings: their source distribution holds all of rdma-core of the same version.
SDIST: Final = "pyverbs"
VERSION: Final = "59.0"
TIMEOUT_S: Final = 300


def rdma_core_archive(folder: Path) -> str:
    """LOCATION@sha256:DIGEST of rdma-core's source in that folder, made if it is not there yet."""
    kept = folder / f"rdma-core-{VERSION}.tar"
    if not kept.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as work:
            packed = Path(work, kept.name)
            _repack(_downloaded(Path(work)), packed)
            packed.replace(kept)
    return f"{kept}@sha256:{digest_of(kept)}"


def _downloaded(work: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    argv = [*pip, "--no-binary", SDIST, "--dest", str(work), f"{SDIST}=={VERSION}"]
    subprocess.run(argv, check=True, timeout=TIMEOUT_S, stdin=subprocess.DEVNULL)
    return work / f"{SDIST}-{VERSION}.tar.gz"


def _repack(sdist: Path, target: Path) -> None:
    """The folder rdma-core of the source distribution as an archive of its own."""
    with tarfile.open(sdist) as source, tarfile.open(target, "w") as tar:
        for member in source:
            _, _, name = member.name.partition("/rdma-core/")
            if name and (member.isfile() or member.issym()):
                member.name = f"rdma-core/{name}"
                tar.addfile(member, source.extractfile(member) if member.isfile() else None)
