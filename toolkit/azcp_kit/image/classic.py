"""Builds through the Docker API: the classic builder, one platform, no command-line client needed."""

from __future__ import annotations

import re
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Final

from azcp_runtime.contract import PreflightError, UsageError
from rich.console import Console
from rich.status import Status

from azcp_kit.engine import Engine, errors_told
from azcp_kit.image.build import BuildRequest, build_arguments
from azcp_kit.image.context import write_tar
from azcp_kit.image.plan import InjectPlan
from azcp_kit.shown import shown

_LAST_LINES: Final = 25
_STEP: Final = re.compile(r"Step (\d+)/(\d+) : (.*)")
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_CREDENTIALS: Final = re.compile(r"(://)[^/@\s]+@")


class ClassicBuilder:
    """The engine's own builder.

    Args:
        engine: a connected engine.
        console: where progress is shown.
    """

    def __init__(self, engine: Engine, console: Console) -> None:
        self._engine = engine
        self._console = console

    def build(self, context: Path, request: BuildRequest, plan: InjectPlan) -> str:
        """Build; the image's id, which has no name so far.

        Raises:
            UsageError: the builder cannot do it.
            PreflightError: a step failed.
        """
        if len(plan.arches) > 1:
            raise UsageError(
                "the engine's own builder makes one platform at a time",
                remedy="use --engine buildx for several",
            )
        with tempfile.TemporaryFile() as file, self._console.status("sending the context") as status:
            _write(context, file)
            with errors_told("the engine cannot build"):
                answers = self._engine.client.api.build(
                    fileobj=file,
                    custom_context=True,
                    platform=None,
                    rm=True,
                    forcerm=True,
                    decode=True,
                    buildargs=build_arguments(request.env),
                )
                return _follow(answers, status, plan.builder)


def _write(context: Path, file: IO[bytes]) -> None:
    try:
        write_tar(context, file)
        file.seek(0)
    except OSError as error:
        raise PreflightError(
            f"the context cannot be written: {error.strerror}",
            remedy=f"make room in {tempfile.gettempdir()}, or name another folder in TMPDIR",
        ) from error


def _follow(answers: Iterable[dict[str, Any]], status: Status, builder: str) -> str:
    """Show each step; the id that the last answer tells.

    docker-py does not raise when a RUN fails: the stream then holds an error and ends well.
    """
    image_id, last = "", deque[str](maxlen=_LAST_LINES)
    for line, answer in _lines(answers):
        if "error" in answer:
            raise step_failed(str(answer["error"]), last, builder)
        image_id = str(answer.get("aux", {}).get("ID", image_id))
        if line:
            last.append(line)
        if step := _STEP.match(line):
            status.update(f"step {step[1]} of {step[2]}: {shown(step[3], 80)}")
    if not image_id:
        raise PreflightError("the builder ended without an image", remedy="look at the engine's log")
    return image_id


def step_failed(error: str, last: Iterable[str], builder: str = "") -> PreflightError:
    """A failed step with its last lines, made fit for a terminal and without credentials of proxies."""
    text = "".join(f"\n    {_tellable(line)}" for line in last)
    hint = f"\n    stages are built on {builder}: --builder names another image with apt" if builder else ""
    return PreflightError(f"the build failed: {_tellable(error)}{text}{hint}")


def _tellable(line: str) -> str:
    return shown(_COLOUR.sub("", _CREDENTIALS.sub(r"\1", line)))


def _lines(answers: Iterable[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for answer in answers:
        texts = str(answer.get("stream", "")).splitlines() or [""]
        for number, text in enumerate(texts):
            yield text.rstrip(), answer if number == len(texts) - 1 else {}
