"""Manifests as text: what is read back is what was meant, whatever the values are."""

from __future__ import annotations

import yaml
from azcp_kit.manifest.write import Comment, manifest_text, without_comments
from hypothesis import given
from hypothesis import strategies as st

TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(
    [
        "yes",
        "~",
        "1e3",
        "0x1F",
        "12:30",
        "=",
        "<<",
        "- a",
        "# no",
        "a: b",
        "{{x}}",
        "$(X)",
        '"\x010": ""',
        "---",
        "",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=20,
)


@given(st.dictionaries(st.text("abc", min_size=1), VALUES, min_size=1))
def test_any_value_is_read_back_as_it_was(document: dict[str, object]) -> None:
    assert list(yaml.safe_load_all(manifest_text([document, document]))) == [document, document]


@given(TEXTS, TEXTS)
def test_a_comment_changes_nothing_whatever_it_says(comment: str, value: str) -> None:
    document = {Comment(comment): None, "a": {Comment(comment): None, "b": value}}
    assert yaml.safe_load(manifest_text([document])) == {"a": {"b": value}}


def test_comments_stand_before_the_field_they_speak_of() -> None:
    document = {"a": 1, Comment("why"): None, "b": [{"name": "x", Comment("how\nso"): None, "y": "2"}]}
    assert manifest_text([document]) == ('a: 1\n# why\nb:\n  - name: x\n    # how\\nso\n    y: "2"\n')
    assert without_comments(document) == {"a": 1, "b": [{"name": "x", "y": "2"}]}
