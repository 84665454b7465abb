"""Where each key of a TOML file is."""

from __future__ import annotations

from azcp_kit.spec.lines import key_lines, line_of

TEXT = '''\
# name = "no"
name = "x" # [not.a.table]
words = [
  "a = 1",  # b = 2
  "[c]",
]
text = """
inside = 1
[nothing]
"""
a.b = 1

[ storage ]
path = "/x"
"quoted key" = { inner = 1 }

[[tolerations]]
key = "a"

[[tolerations]]
key = "b"
'''


def test_keys_are_found_on_their_lines_and_texts_are_no_keys() -> None:
    assert key_lines(TEXT) == {
        "name": 2,
        "words": 3,
        "text": 7,
        "a": 11,
        "a.b": 11,
        "storage": 13,
        "storage.path": 14,
        "storage.quoted key": 15,
        "tolerations": 17,
        "tolerations[0]": 17,
        "tolerations[0].key": 18,
        "tolerations[1]": 20,
        "tolerations[1].key": 21,
    }


def test_quotes_before_the_end_of_a_string_of_several_lines_belong_to_it() -> None:
    assert key_lines('run = ["""a"""", "[x"]\nnodes = 1\n')["nodes"] == 2
    assert key_lines('"stora\\u0067e".path = 1\n') == {"storage": 1, "storage.path": 1}


def test_what_has_no_line_of_its_own_is_where_its_holder_is() -> None:
    lines = key_lines(TEXT)
    assert line_of(lines, "storage.quoted key.inner") == 15
    assert line_of(lines, "words[1]") == 3
    assert line_of(lines, "tolerations[1].absent") == 20
    assert line_of(lines, "absent.too") is None
