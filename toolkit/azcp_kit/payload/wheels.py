"""The runtime's packages: wheels for the target, checked by digest, unpacked without an index."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azcp_runtime.contract import DownloadError
from packaging.requirements import Requirement
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from azcp_kit.payload.archives import digest_of

log = logging.getLogger(__name__)

GLIBC: Final = (2, 28)
"""The newest manylinux baseline among the wheels: the base's glibc must be at least this."""

_MACHINE: Final = {"amd64": "x86_64", "arm64": "aarch64"}
_OLDEST_MINOR: Final = 5
_LEGACY: Final = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
_PIP: Final = (sys.executable, "-I", "-m", "pip", "--disable-pip-version-check", "--no-input")
_LOG_LINES: Final = 15


@dataclass(frozen=True, slots=True)
class Target:
    """Which wheels fit: Docker's name of the architecture and the private Python's version, such as 3.13."""

    arch: str
    python: tuple[int, int]

    @property
    def machine(self) -> str:
        """The kernel's name of the architecture."""
        return _MACHINE[self.arch]

    def platforms(self) -> list[str]:
        """The manylinux tags it accepts, the newest first."""
        minors = range(GLIBC[1], _OLDEST_MINOR - 1, -1)
        tags = [tag for minor in minors for tag in (f"manylinux_2_{minor}", _LEGACY.get(minor)) if tag]
        return [f"{tag}_{self.machine}" for tag in tags]

    def tags(self) -> list[Tag]:
        """What a wheel's file name may say to fit, the best first, as pip orders them."""
        major, minor = self.python
        interpreter, platforms = f"cp{major}{minor}", self.platforms()
        return [
            *cpython_tags(self.python, [interpreter], platforms),
            *compatible_tags(self.python, interpreter, platforms),
        ]

    def markers(self) -> dict[str, str]:
        """What environment markers of requirements are evaluated against."""
        version = ".".join(map(str, self.python))
        return {
            "implementation_name": "cpython",
            "os_name": "posix",
            "platform_machine": self.machine,
            "platform_python_implementation": "CPython",
            "platform_system": "Linux",
            "python_full_version": f"{version}.0",
            "python_version": version,
            "sys_platform": "linux",
        }


def requirements_for(text: str, target: Target) -> dict[str, str]:
    """The logical lines of a hash-locked requirements file that apply to the target, by package.

    The markers are those of the target, not of the Python that runs this, as pip would have it.
    """
    found: dict[str, str] = {}
    for line in text.replace("\\\n", " ").splitlines():
        specification = line.partition(" #")[0].strip()
        if not specification or specification.startswith("#"):
            continue
        head, *hashes = specification.split("--hash=")
        requirement = Requirement(head)
        if requirement.marker is None or requirement.marker.evaluate(target.markers()):
            pin = f"{requirement.name}{requirement.specifier}"
            found[canonicalize_name(requirement.name)] = " ".join(
                [pin, *(f"--hash={each.strip()}" for each in hashes)]
            )
    return found


def download(lines: dict[str, str], target: Target, wheelhouse: Path) -> None:
    """Bring the wheels into the folder, from wherever this machine's pip is configured to take them.

    Raises:
        DownloadError: pip's last lines.
    """
    wheelhouse.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        locked = Path(work, "requirements.txt")
        locked.write_text("".join(f"{line}\n" for line in lines.values()), encoding="utf-8")
        _pip("download", "--dest", str(wheelhouse), "--requirement", str(locked), *_selection(target))


def unpack_wheels(lines: dict[str, str], target: Target, wheelhouse: Path, folder: Path) -> None:
    """Install them into the folder without an index; each digest is checked again.

    Raises:
        DownloadError: pip's last lines.
    """
    with tempfile.TemporaryDirectory() as work:
        locked = Path(work, "requirements.txt")
        locked.write_text("".join(f"{line}\n" for line in lines.values()), encoding="utf-8")
        _pip(
            "install",
            # No setting of this machine's has a say: a constraint or a target of the user's would break it.
            "--isolated",
            "--no-index",
            "--no-compile",
            "--no-warn-script-location",
            f"--find-links={wheelhouse}",
            f"--target={folder}",
            "--requirement",
            str(locked),
            *_selection(target),
        )


def wheel_of(line: str, target: Target, wheelhouse: Path) -> Path:
    """The wheel of a requirement's line that pip takes: a wheelhouse may hold those of several Pythons.

    Raises:
        DownloadError: none with one of the line's digests fits.
    """
    pin, *options = line.split(" ")
    requirement = Requirement(pin)
    digests = {option.removeprefix("--hash=sha256:") for option in options}
    order = {tag: place for place, tag in enumerate(target.tags())}
    fitting = [
        (place, path)
        for path in sorted(wheelhouse.glob("*.whl"))
        if (place := _place(path.name, requirement, order)) is not None and digest_of(path) in digests
    ]
    if not fitting:
        raise DownloadError(f"{wheelhouse} has no wheel of {pin} for {target.machine} with a known digest")
    return min(fitting)[1]


def _place(file_name: str, requirement: Requirement, order: Mapping[Tag, int]) -> int | None:
    """How well a wheel fits, the least the best; None for one that does not, or is another package's."""
    try:
        name, version, _, tags = parse_wheel_filename(file_name)
    except InvalidWheelFilename:
        return None  # pip passes it over too
    if name != canonicalize_name(requirement.name):
        return None
    if not requirement.specifier.contains(version, prereleases=True):
        return None
    return min((order[tag] for tag in tags if tag in order), default=None)


def unpack_data(wheel: Path, folder: Path) -> None:
    """Unpack only the files that a wheel would put beside the interpreter (its .data/data/ folder)."""
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            top, _, rest = member.filename.partition(".data/data/")
            if not rest or "/" in top or member.is_dir():
                continue
            path = folder / rest
            if not path.resolve().is_relative_to(folder.resolve()):
                raise DownloadError(f"{wheel.name} holds {member.filename!r}, outside its folder")
            path.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(member) as source, path.open("wb") as file:
                shutil.copyfileobj(source, file)
            path.chmod(0o755 if member.external_attr >> 16 & 0o111 else 0o644)


def _selection(target: Target) -> list[str]:
    major, minor = target.python
    return [
        "--no-deps",
        "--require-hashes",
        "--only-binary=:all:",
        "--implementation=cp",
        f"--python-version={major}.{minor}",
        f"--abi=cp{major}{minor}",
        "--abi=abi3",
        "--abi=none",
        *(f"--platform={platform}" for platform in target.platforms()),
    ]


def _pip(*arguments: str) -> None:
    argv = [*_PIP, *arguments]
    env = {name: value for name, value in os.environ.items() if name != "PIP_CONSTRAINT"}
    if "--isolated" in arguments:
        env["PIP_CONFIG_FILE"] = os.devnull  # --isolated leaves the machine's own configuration in force
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)  # noqa: S603 - an argument list
    log.debug("%s", done.stdout)
    if done.returncode != 0:
        last = "\n".join(done.stderr.strip().splitlines()[-_LOG_LINES:])
        raise DownloadError(
            f"pip {arguments[0]} failed:\n{last}",
            remedy="is the index reachable, or is --wheelhouse complete?",
        )
