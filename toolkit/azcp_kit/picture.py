"""Writes the picture of a run from the report's file: an HTML page that needs nothing else, or a PNG."""

from __future__ import annotations

from typing import TYPE_CHECKING

from azcp_runtime.contract import UsageError

from azcp_kit.render import render
from azcp_kit.report import read_report
from azcp_kit.timeline import timeline

if TYPE_CHECKING:
    from pathlib import Path

    from azcp_kit.report import Report


def write_picture(report: Path, picture: Path) -> Path:
    """Draw the run in `report` into the file `picture`, and give its path back.

    Args:
        report: what azcp-distribute --report wrote.
        picture: its suffix decides what is drawn, .html or .png.

    Raises:
        UsageError: the report cannot be read, or the picture not be written.
    """
    draw = {".html": _write_page, ".png": _write_image}.get(picture.suffix.lower())
    if draw is None:
        raise UsageError(f"{picture} is neither a .html nor a .png file", remedy="name the picture run.html")
    run = read_report(report)
    try:
        draw(run, picture)
    except OSError as error:
        raise UsageError(
            f"{picture} cannot be written", cause=error.strerror or "", remedy="name another file"
        ) from error
    return picture


def _write_page(run: Report, path: Path) -> None:
    path.write_text(render("report/timeline.html.j2", timeline=timeline(run)), encoding="utf-8")


def _write_image(run: Report, path: Path) -> None:
    # Pillow is for pictures alone: no other command waits for its import.
    from azcp_kit.png import MOST_NODES, write_png

    write_png(timeline(run, MOST_NODES), path)
