"""Builds through `docker buildx`: several platforms at once, and secrets that no layer keeps."""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
import tempfile
from collections import deque
from pathlib import Path
from typing import Final

from azcp_runtime.contract import PreflightError, UsageError
from rich.console import Console

from azcp_kit.image.build import BuildRequest, build_arguments
from azcp_kit.image.classic import step_failed
from azcp_kit.image.plan import InjectPlan
from azcp_kit.shown import shown

_LAST_LINES: Final = 25


class BuildxBuilder:
    """The buildx command of the docker client.

    Args:
        console: where progress is shown.
    """

    def __init__(self, console: Console) -> None:
        self._console = console

    def build(self, context: Path, request: BuildRequest, plan: InjectPlan) -> str:
        """Build and tag: one platform into the engine, several into the registry; the image's id.

        Raises:
            UsageError: an engine holds one platform, and several are not to be pushed.
            PreflightError: buildx is missing, or a step failed.
        """
        if len(plan.arches) > 1 and not request.push:
            raise UsageError("an engine holds one platform of an image", remedy="give --push for several")
        docker = shutil.which("docker")
        if docker is None:
            raise PreflightError("the docker command is not installed", remedy="use --engine docker")
        if subprocess.run([docker, "buildx", "version"], capture_output=True, check=False).returncode:  # noqa: S603 - an argument list
            raise PreflightError(
                "docker has no buildx plugin", remedy="install it, or use --engine docker for one platform"
            )
        with tempfile.TemporaryDirectory() as work, self._console.status("docker buildx build") as status:
            id_file = Path(work, "id")
            argv = [docker, *buildx_arguments(request, plan, id_file), str(context)]
            # The values of build arguments go through the environment: a proxy's address may hold a password.
            env = {**os.environ, **build_arguments(request.env)}
            last = deque[str](maxlen=_LAST_LINES)
            with subprocess.Popen(  # noqa: S603 - an argument list
                argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
            ) as process:
                for line in process.stdout or ():
                    last.append(line.rstrip())
                    status.update(shown(line.strip(), 100))
            if process.returncode != 0:
                raise step_failed(f"docker buildx ended with {process.returncode}", last, plan.builder)
            return id_file.read_text(encoding="ascii").strip()


def buildx_arguments(request: BuildRequest, plan: InjectPlan, id_file: Path) -> list[str]:
    """The arguments of the docker command, without the context."""
    platforms = ",".join(f"linux/{arch}" for arch in plan.arches)
    return [
        "buildx",
        "build",
        "--progress=plain",
        f"--platform={platforms}",
        f"--iidfile={id_file}",
        # One platform gets its name after the proof.
        *([f"--tag={request.tag}", "--push"] if len(plan.arches) > 1 else ["--load"]),
        *(f"--build-arg={name}" for name in build_arguments(request.env)),
        *(f"--secret={_fields(f'id={each.id}', f'src={each.file}')}" for each in request.secrets),
    ]


def _fields(*fields: str) -> str:
    """The fields of an option, which buildx reads as a line of CSV: a path may hold commas."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(fields)
    return line.getvalue()
