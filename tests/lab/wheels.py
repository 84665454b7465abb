"""Wheels: small ones made by hand, and real ones from the configured index."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

INSTALL_TIMEOUT_S: Final = 300


def make_wheel(
    folder: Path,
    name: str,
    version: str,
    tag: str = "py3-none-any",
    files: Mapping[str, bytes] | None = None,
    executables: Mapping[str, bytes] | None = None,
) -> Path:
    """Write a wheel (PEP 427) with these files into the folder; a package named like it if there are none."""
    stem = f"{name.replace('-', '_')}-{version}"
    content = dict(files or {f"{name.replace('-', '_')}/__init__.py": f"TAG = {tag!r}\n".encode()})
    content |= executables or {}
    content[f"{stem}.dist-info/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
    )
    purelib = str(tag.endswith("-any")).lower()
    content[f"{stem}.dist-info/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: {purelib}\nTag: {tag}\n".encode()
    )
    record = "".join(f"{path},sha256={_digest(body)},{len(body)}\n" for path, body in content.items())
    content[f"{stem}.dist-info/RECORD"] = f"{record}{stem}.dist-info/RECORD,,\n".encode()
    wheel = folder / f"{stem}-{tag}.whl"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, body in content.items():
            member = zipfile.ZipInfo(path)
            member.external_attr = (0o100755 if path in (executables or {}) else 0o100644) << 16
            archive.writestr(member, body)
    return wheel


def install_wheel(requirement: str, prefix: Path) -> None:
    """Install one package from the configured index below `prefix`, without what it depends on."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # Even with a prefix pip looks at what this environment has. Without --ignore-installed it installs
    # nothing where the version is the same, and takes the package away from here where it is another.
    argv = [*pip, "--ignore-installed", "--no-deps", "--no-compile", "--prefix", str(prefix), requirement]
    subprocess.run(argv, check=True, timeout=INSTALL_TIMEOUT_S, stdin=subprocess.DEVNULL)


def locked(*wheels: Path, marker: str = "") -> str:
    """A line of a hash-locked requirements file that each of the wheels of one release satisfies."""
    name, version, *_ = wheels[0].name.split("-")
    hashes = "".join(
        f" \\\n    --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}" for wheel in wheels
    )
    return (
        f"{name.replace('_', '-')}=={version}{f' ; {marker}' if marker else ''}{hashes}\n    # via nothing\n"
    )


def _digest(body: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()
