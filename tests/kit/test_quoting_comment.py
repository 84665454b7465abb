"""A text in a comment cannot leave it, and templates know the three filters."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import yaml
from azcp_kit import render as renderer
from azcp_kit.quoting.comment import one_line
from azcp_kit.render import render
from hypothesis import given
from hypothesis import strategies as st


@given(st.text())
def test_a_comment_is_one_printable_line(text: str) -> None:
    comment = one_line(text)
    assert comment.isprintable()
    assert not comment.startswith(" ")


@given(st.text())
def test_a_comment_says_nothing_to_who_reads_the_file(text: str) -> None:
    comment = f"# {one_line(text)}\n"
    assert tomllib.loads(f"{comment}key = 1") == {"key": 1}
    assert yaml.safe_load(f"{comment}key: 1") == {"key": 1}


@pytest.mark.parametrize(
    ("text", "comment"),
    [
        ("", ""),
        ("as it is", "as it is"),
        ("two\nlines\r\n  and\tthree\u2028four", "two lines and three four"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a" * 201, f"{'a' * 200}..."),
    ],
)
def test_a_comment_is_what_people_would_write(text: str, comment: str) -> None:
    assert one_line(text) == comment


def test_a_comment_can_be_cut_shorter() -> None:
    assert one_line("abcdef", 3) == "abc..."


def test_templates_quote_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renderer, "templates_folder", lambda: tmp_path)
    template = "# {{ name | one_line }}\n{{ name | toml_string }}\n{{ name | shell_word }}\n"
    (tmp_path / "all.j2").write_text(template, encoding="utf-8")
    assert render("all.j2", name="it's\n2") == "# it's 2\n\"it's\\n2\"\n'it'\"'\"'s\n2'\n"
