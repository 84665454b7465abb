"""Writes the timeline picture of a run: from the report's file to one HTML file that needs nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from azcp_kit.render import render
from azcp_kit.report import read_report
from azcp_kit.timeline import timeline

if TYPE_CHECKING:
    from pathlib import Path


def write_picture(report: Path, picture: Path) -> Path:
    """Draw the run in `report` into the file `picture`, and give its path back.

    Raises:
        UsageError: the report cannot be read.
    """
    text = render("report/timeline.html.j2", timeline=timeline(read_report(report)))
    picture.write_text(text, encoding="utf-8")
    return picture
