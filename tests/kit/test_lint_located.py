"""YAML with lines: values know theirs, and input that no manifest has is refused in one sentence."""

from __future__ import annotations

import pytest
from azcp_kit.lint.located import parse_documents
from azcp_runtime.contract import UsageError


def test_a_value_knows_the_line_of_its_key() -> None:
    (document,) = parse_documents("a:\n  b:\n    - 1\n    - c: x\n").documents
    assert document.at("a").line == 1
    assert document.at("a", "b").line == 2
    assert document.at("a", "b").items[1].at("c").line == 4
    assert document.at("a", "none", "deeper").line == 1
    assert not document.at("a", "none")


def test_the_first_line_of_a_literal_block_is_the_one_below_its_sign() -> None:
    (document,) = parse_documents("a: |\n  one\n  two\nb: >\n  three\n").documents
    assert document.at("a").block_line == 2
    assert document.at("b").block_line == 0


def test_a_key_that_stands_twice_is_told_with_its_line() -> None:
    assert parse_documents("a: 1\nb: 2\na: 3\n").duplicates == ((3, "a"),)


def test_merged_keys_do_not_replace_own_ones() -> None:
    (_, document) = parse_documents("[]\n---\nx: &x {a: 1, b: 2}\ny:\n  <<: *x\n  b: 3\n").documents
    assert document.at("y", "a").text == "1"
    assert document.at("y", "b").text == "3"


@pytest.mark.parametrize(
    ("text", "number"), [("0400", 256), ("0o600", 384), ("12", 12), ("-1", -1), ("a", None)]
)
def test_numbers_are_read_as_modes_are_written(text: str, number: int | None) -> None:
    (document,) = parse_documents(f"a: {text}\n").documents
    assert document.at("a").number == number


def test_what_is_null_is_absent() -> None:
    (document,) = parse_documents("a:\nb: ~\nc: ''\n").documents
    assert [bool(document.at(key)) for key in "abc"] == [False, False, True]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1\nb: 2\n", "line 2: this is not YAML"),
        ("a: {{ .Values.x }}: y\n", "it looks like a template"),
        ("[" * 200, "more than 64 levels"),
        ("a:\n" + "".join(f"{' ' * n}b:\n" for n in range(1, 100)), "more than 64 levels"),
        ("a: &a [*a]\n", "line 1: alias a stands for nothing complete"),
        ("a: *nobody\n", "line 1: alias nobody stands for nothing"),
        ("a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{f'*a{n - 1},' * 10}]\n" for n in range(1, 20)),
         "more than 100000 values"),
        ("- x\n" * 100_001, "more than 100000 values"),
        ("a: \x07\n", "this is not YAML"),
    ],
    ids=["syntax", "template", "brackets", "indents", "cycle", "no anchor", "alias bomb", "too many",
         "control"],
)  # fmt: skip
def test_what_is_no_manifest_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_documents(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
