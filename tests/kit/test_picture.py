"""The picture is one file that needs no other, and nothing in a report can become part of its markup."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from azcp_kit.picture import write_picture
from azcp_kit.render import render, templates_folder
from jinja2 import UndefinedError

from tests.kit.reports import REPORT, changed

if TYPE_CHECKING:
    from pathlib import Path

EVIL = "<script>alert('\"')</script>"


class Elements(HTMLParser):
    """Collects the elements and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called by feed."""
        self.tags.add(tag)
        self.attributes.update(attrs)


def picture_of(data: object, folder: Path) -> str:
    report = folder / "report.json"
    report.write_text(json.dumps(data))
    return write_picture(report, folder / "timeline.html").read_text()


def test_the_page_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    page = Elements()
    page.feed(text := picture_of(REPORT, tmp_path))
    assert page.tags.isdisjoint({"script", "link", "img", "iframe", "object", "use"})
    assert {name for name, _ in page.attributes}.isdisjoint({"src", "href", "xlink:href"})
    assert not re.search(r"url\(|@import", text)


def test_host_names_and_paths_are_escaped(tmp_path: Path) -> None:
    text = picture_of(changed(host=EVIL) | {"source": EVIL, "dest": EVIL}, tmp_path)
    assert "<script" not in text
    # Title, heading twice, band and table.
    assert text.count("&lt;script&gt;") == 5


def test_the_page_shows_the_node_its_rates_and_its_totals(tmp_path: Path) -> None:
    text = picture_of(REPORT, tmp_path)
    assert text.count("<svg") == 3
    for expected in ("Node 0", "n0", "Broadcast in", "peak 240 b/s", "30 B"):
        assert expected in text


def test_a_value_that_the_template_needs_cannot_be_forgotten() -> None:
    with pytest.raises(UndefinedError):
        render("report/timeline.html.j2")


def test_the_templates_are_found_in_a_checkout() -> None:
    assert (templates_folder() / "report" / "timeline.html.j2").is_file()
