"""The picture as PNG: as wide for any run, all nodes and the slowest in it, and errors in one line."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from azcp_kit.canvas import Canvas, fitting, mixed
from azcp_kit.picture import write_picture
from azcp_kit.png import BAND_HEIGHT, BANNER_HEIGHT, COLOURS, MOST_NODES, SLOW, WIDTH, totals_line
from azcp_kit.report import parse_report
from azcp_kit.timeline import timeline
from azcp_runtime.contract import ExitCode, UsageError
from PIL import Image, ImageColor

from tests.kit.reports import REPORT, changed

FAILED = {"status": "failed", "exit_code": 5, "reason": "rank 0 on n0: cannot read x"}


def drawn(data: object, folder: Path) -> Image.Image:
    """The picture of a report, at the size of its points."""
    report = folder / "report.json"
    report.write_text(json.dumps(data))
    with Image.open(write_picture(report, folder / "run.png")) as picture:
        assert picture.format == "PNG"
        assert picture.width == 2 * WIDTH
        return picture.convert("RGB")


def nodes(count: int) -> dict[str, Any]:
    """A report of so many nodes."""
    ranks = [copy.deepcopy(REPORT["ranks"][0]) | {"rank": node, "node": node} for node in range(count)]
    return REPORT | {"nodes": count, "ranks": ranks}


def has(picture: Image.Image, colour: str) -> bool:
    """Whether a colour is in the picture."""
    found = picture.getcolors(picture.width * picture.height) or []
    return ImageColor.getrgb(colour) in [each for _, each in found]


def test_the_three_rates_have_their_colours(tmp_path: Path) -> None:
    picture = drawn(changed(received_bytes=30), tmp_path)
    assert all(has(picture, colour) for colour in COLOURS.values())
    assert not has(picture, SLOW)


def test_a_picture_has_a_band_for_all_nodes_and_for_the_slowest_of_many(tmp_path: Path) -> None:
    one, two, most, many = (drawn(nodes(count), tmp_path).height // 2 for count in (1, 2, MOST_NODES, 1024))
    assert (two - one) / BAND_HEIGHT == 2
    assert (most - two) / BAND_HEIGHT == MOST_NODES - 2
    assert many == most


def test_a_run_that_failed_says_so_on_its_picture(tmp_path: Path) -> None:
    well, failed = drawn(REPORT, tmp_path), drawn(REPORT | {"outcome": FAILED}, tmp_path)
    assert failed.height - well.height == 2 * BANNER_HEIGHT
    assert has(failed, SLOW)


def test_the_image_has_the_totals_of_the_page() -> None:
    told = totals_line(timeline(parse_report(REPORT)))
    assert told.startswith("Totals:  Ranks 1  ·  Downloaded 30 B  ·  Received 0 B  ·  Written 30 B  ·  ")
    assert told.endswith("  ·  Done after 1.00 s")


def test_a_report_without_a_single_rank_is_drawn(tmp_path: Path) -> None:
    empty = REPORT | {"stages": {}, "ranks": [], "retries": {}, "outcome": FAILED}
    assert drawn(empty, tmp_path).height > 0
    assert write_picture(tmp_path / "report.json", tmp_path / "run.html").stat().st_size > 0


def test_a_long_or_hostile_host_name_stays_within_its_place(tmp_path: Path) -> None:
    drawn(changed(host="\u202e\x1b[31m" + "x" * 5000), tmp_path)
    name = fitting("n" * 300, 13, 200)
    assert "..." in name
    assert Canvas(400, 20, "#ffffff").text(0, 12, name, "#000000", size=13) <= 200


def test_a_colour_is_laid_thinly_on_another() -> None:
    assert mixed("#ff0000", "#ffffff", 0.2) == "#ffcccc"


def test_another_kind_of_picture_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"run\.svg is neither"):
        write_picture(tmp_path / "report.json", tmp_path / "run.svg")


def test_the_command_prints_where_the_picture_is_or_one_line(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text(json.dumps(REPORT))
    for name, code in (("run.html", 0), ("run.png", 0), ("absent/run.png", ExitCode.USAGE)):
        program = Path(sys.prefix, "bin", "azcp-kit")
        command = [str(program), "report", str(report), "-o", str(tmp_path / name)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stdout) == (code, "" if code else f"{tmp_path / name}\n")
        assert done.stderr.count("\n") == (1 if code else 0)
