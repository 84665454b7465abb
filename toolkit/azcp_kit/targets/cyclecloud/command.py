"""`azcp-kit generate cyclecloud`: a job.toml in, a project's folder out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from azcp_runtime.contract import UsageError

from azcp_kit.spec.read import read_job
from azcp_kit.targets.cyclecloud.needs import cyclecloud_problems
from azcp_kit.targets.cyclecloud.project import is_executable, project_files
from azcp_kit.targets.cyclecloud.write import write_folder


def run_cyclecloud(file: Path, output: Path | None, settings: Sequence[str] = ()) -> None:
    """Write the project.

    Args:
        file: the job.toml.
        output: the folder.
        settings: ``key=value`` that come over the file's.

    Raises:
        SpecError: the job has problems; all of them are named.
        UsageError: there is no folder to write to, or one with files of somebody else.
    """
    if output is None:
        raise UsageError("a CycleCloud project is a folder of files", remedy="name it with -o FOLDER")
    job = read_job(file, settings, cyclecloud_problems)
    write_folder(output, project_files(job), is_executable)
