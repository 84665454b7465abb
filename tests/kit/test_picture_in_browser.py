"""The page in a real browser: no error, nothing refused or loaded, light and dark, 1,024 nodes."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
from azcp_kit.picture import write_picture
from azcp_kit.timeline import MAX_DRAWN_NODES

from tests.kit.reports import REPORT, changed
from tests.lab.browser import Shown, show

if TYPE_CHECKING:
    from pathlib import Path

EVIL = "</title><script>document.title='taken'</script><img src=https://example.invalid/x>"


def many_ranks(count: int) -> dict[str, Any]:
    """A report of so many nodes; the last ones are a little slower."""
    (rank,) = REPORT["ranks"]
    ranks = []
    for index in range(count):
        samples = rank["samples"] | {"seconds": [0, 10 + index / count]}
        place = {"rank": index, "node": index, "host": f"node-{index:04}", "samples": samples}
        ranks.append(copy.deepcopy(rank) | place)
    return REPORT | {"nodes": count, "ranks": ranks}


def shown(data: object, folder: Path, *, dark: bool = False) -> Shown:
    """The page of a report."""
    report = folder / "report.json"
    report.write_text(json.dumps(data))
    return show(write_picture(report, folder / "run.html"), folder, dark=dark)


@pytest.mark.usefixtures("browser")
def test_what_a_page_does_wrong_is_heard(tmp_path: Path) -> None:
    (tmp_path / "bad.html").write_text("<script>console.log('hello'); nothing.here()</script>")
    assert len(show(tmp_path / "bad.html", tmp_path).console) == 2


@pytest.mark.usefixtures("browser")
def test_the_page_is_shown_without_a_word_on_the_console(tmp_path: Path) -> None:
    page = shown(REPORT, tmp_path)
    assert page.console == ()
    assert "Node 0" in page.dom
    # The colour of the download curve, and a light page.
    assert (42, 120, 214) in colours(page)
    assert page.picture.getpixel((5, 5)) == (247, 247, 245)


@pytest.mark.usefixtures("browser")
def test_a_reader_who_wants_it_dark_gets_it_dark(tmp_path: Path) -> None:
    page = shown(REPORT, tmp_path, dark=True)
    assert page.picture.getpixel((5, 5)) == (19, 19, 18)
    assert (90, 159, 240) in colours(page)


@pytest.mark.usefixtures("browser")
def test_a_hostile_report_runs_nothing_and_loads_nothing(tmp_path: Path) -> None:
    failed = {"status": "failed", "exit_code": 5, "reason": EVIL}
    page = shown(changed(host=EVIL) | {"source": EVIL, "dest": EVIL, "outcome": failed}, tmp_path)
    assert page.console == ()
    assert "<title>azcp-kit timeline: &lt;/title&gt;" in page.dom
    assert "<img" not in page.dom


@pytest.mark.usefixtures("browser")
def test_a_thousand_nodes_are_one_page_of_all_together_and_the_slowest(tmp_path: Path) -> None:
    page = shown(many_ranks(1024), tmp_path)
    assert page.console == ()
    assert "All 1,024 nodes" in page.dom
    assert page.dom.count("<svg") == 3 * (MAX_DRAWN_NODES + 1)
    assert page.dom.count("<tr") == 1024 + 2
    assert len(page.dom) < 2_000_000


def colours(page: Shown) -> set[tuple[int, ...]]:
    """Every colour of the picture."""
    found = page.picture.getcolors(page.picture.width * page.picture.height)
    assert found is not None
    return {colour for _, colour in found if isinstance(colour, tuple)}
