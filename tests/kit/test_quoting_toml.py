"""A text in a TOML file is read back as it was, whatever is in it."""

from __future__ import annotations

import tomllib

import pytest
from azcp_kit.quoting.toml import toml_string
from azcp_runtime.contract import UsageError
from hypothesis import example, given
from hypothesis import strategies as st

UTF8 = st.text(st.characters(exclude_categories=["Cs"]))


@given(UTF8)
@example('"""')
@example("\\")
@example('\\"')
@example("\r\n")
@example("\0\x7f\x85\u2028")
@example("#{}[]='${{ x }}")
@example("\U0010ffff\ue000")
@example("\ufeff")
def test_a_string_is_read_back(text: str) -> None:
    assert tomllib.loads(f"key = {toml_string(text)}  # end") == {"key": text}


@given(UTF8)
def test_a_string_is_on_one_line_and_shows_all_of_itself(text: str) -> None:
    quoted = toml_string(text)
    assert quoted.isprintable()
    assert len(quoted.splitlines()) == 1


@given(UTF8)
def test_a_string_is_a_key_too(text: str) -> None:
    assert tomllib.loads(f"{toml_string(text)} = 1") == {text: 1}


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", '""'),
        ("plain text", '"plain text"'),
        ('say "no"', r'"say \"no\""'),
        (r"C:\temp", r'"C:\\temp"'),
        ("a\tb\nc\rd\fe\b", r'"a\tb\nc\rd\fe\b"'),
        ("\x00\x1f\x7f", r'"\u0000\u001f\u007f"'),
        ("é 日本 €", '"é 日本 €"'),
        ("left\u202eright", r'"left\u202eright"'),
        ("\U000e0001", r'"\U000e0001"'),
    ],
)
def test_a_string_is_escaped_as_people_would(text: str, quoted: str) -> None:
    assert toml_string(text) == quoted


@pytest.mark.parametrize("text", ["\ud800", "a\udcffb"])
def test_what_is_no_utf8_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not valid UTF-8"):
        toml_string(text)
