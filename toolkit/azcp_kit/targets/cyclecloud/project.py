"""Every file of a CycleCloud project, by its path in the project's folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from azcp_kit.render import render, templates_folder
from azcp_kit.spec.job import JobSpec

SPECS: Final = ("default", "scheduler", "execute")
_FOLDERS: Final = ("scripts", "tests")


def project_files(job: JobSpec) -> Mapping[str, str]:
    """The texts; what ends in .sh below scripts/ and tests/ is to be executable."""
    values = {"cyclecloud": job.cyclecloud}
    settings = render("cyclecloud/settings.sh.j2", **values)
    files = {
        "project.ini": render("cyclecloud/project.ini.j2", **values),
        "README.md": render("cyclecloud/README.md.j2", **values),
    }
    source = templates_folder() / "cyclecloud"
    for spec in SPECS:
        target = f"specs/{spec}/cluster-init"
        files[f"{target}/files/settings.sh"] = settings
        # A node gets the folders of its own specs alone, so each has all that its scripts read.
        files |= {f"{target}/files/{name}": text for name, text in _texts(source / "files")}
        for folder in _FOLDERS:
            files |= {f"{target}/{folder}/{name}": text for name, text in _texts(source / spec / folder)}
    return files


def is_executable(path: str) -> bool:
    """Whether CycleCloud runs the file."""
    return path.endswith(".sh") and Path(path).parent.name in _FOLDERS


def _texts(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.glob("*.sh")):
        yield path.name, path.read_text(encoding="utf-8")
