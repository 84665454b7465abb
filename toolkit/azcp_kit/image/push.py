"""Pushes an image through the engine, after it has been proven."""

from __future__ import annotations

from azcp_runtime.contract import PreflightError
from rich.console import Console

from azcp_kit.engine import Engine, errors_told
from azcp_kit.shown import shown


def push_image(engine: Engine, tag: str, console: Console) -> None:
    """Push the tag with the credentials of `docker login`.

    Raises:
        PreflightError: the registry or the engine refused.
    """
    what = f"{shown(tag)} cannot be pushed"
    with console.status(f"pushing {shown(tag)}") as status, errors_told(what):
        for answer in engine.client.api.push(tag, stream=True, decode=True):
            if "error" in answer:  # a push that fails half-way ends its stream well
                raise PreflightError(
                    what, cause=shown(str(answer["error"])), remedy="check the name and `docker login`"
                )
            status.update(f"pushing {shown(tag)}: {shown(str(answer.get('status', '')))}")
