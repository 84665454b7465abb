"""A manifest of any origin becomes documents or one clear error, and never more work than it is worth."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal

import pytest
from azcp_kit.rehearse.documents import read_documents
from azcp_kit.rehearse.fields import Fields
from azcp_kit.rehearse.quantity import parse_quantity
from azcp_runtime.contract import UsageError

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}


def test_several_documents_are_read_in_their_order() -> None:
    found = read_documents("kind: A\nmetadata: {name: x}\n---\n\n---\nkind: B\nmetadata: {name: y}\n")
    assert [(d.kind, d.name, d.namespace) for d in found] == [("A", "x", "default"), ("B", "y", "default")]


def test_json_and_lists_are_manifests_too() -> None:
    assert read_documents(json.dumps(POD))[0].title == "Pod a"
    text = json.dumps({"kind": "List", "items": [POD, {**POD, "metadata": {"generateName": "b-"}}]})
    assert [d.name for d in read_documents(text)] == ["a", "b"]


def test_the_group_of_an_api_tells_equal_kinds_apart() -> None:
    groups = [read_documents(f"apiVersion: {v}\nkind: Job\n")[0].group for v in ("batch/v1", "v1")]
    assert groups == ["batch", ""]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("- just\n- a list\n", "no mapping"),
        ("a: [\n", "no YAML"),
        ("metadata: {name: x}\n", "has no kind"),
        ("kind: !!python/object/apply:os.system [id]\n", "no YAML"),
        ("1: 2\n", "no mapping with strings"),
        ("x: " + "[" * 5000, "cannot be read"),
    ],
)
def test_what_is_no_manifest_is_one_error(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read_documents(text)


def test_aliases_that_stand_for_billions_of_values_are_refused() -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    with pytest.raises(UsageError, match="aliases expanded"):
        read_documents("\n".join(lines))


def test_a_mapping_that_holds_itself_is_refused() -> None:
    with pytest.raises(UsageError, match="aliases expanded"):
        read_documents("&a\nkind: Pod\nspec: *a\n")


def test_a_manifest_of_many_megabytes_is_refused() -> None:
    with pytest.raises(UsageError, match="8 MiB"):
        read_documents("#" * (9 << 20))


ASKS: dict[str, Callable[[Fields], object]] = {
    "number": lambda fields: fields.number("n", 0),
    "text": lambda fields: fields.text("n"),
    "flag": lambda fields: fields.flag("n"),
    "words": lambda fields: fields.words("n"),
    "each": lambda fields: fields.each("n"),
    "strings": lambda fields: fields.strings("n"),
}


@pytest.mark.parametrize(
    ("value", "ask", "said"),
    [
        ("3", "number", "spec.n is no whole number"),
        (True, "number", "spec.n is no whole number"),
        (-1, "number", "spec.n is no whole number"),
        (3, "text", 'spec.n is no string; write "3"'),
        ("yes", "flag", "spec.n is neither true nor false"),
        ("x", "words", "spec.n is no list"),
        ([1], "words", "spec.n\\[0\\] is no string"),
        (["x"], "each", "spec.n\\[0\\] is no mapping"),
        ([], "strings", "spec.n is no mapping"),
    ],
)
def test_a_field_of_another_type_is_named(value: object, ask: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        ASKS[ask](Fields({"n": value}, "spec"))


@pytest.mark.parametrize(
    ("text", "value"),
    [("64Gi", 64 << 30), ("500m", "0.5"), ("1e3", 1000), ("1E", 10**18), ("2", 2), (".5", "0.5"), (8, 8)],
)
def test_quantities_are_read_as_kubernetes_writes_them(text: object, value: object) -> None:
    assert parse_quantity(text, "x") == Decimal(str(value))


@pytest.mark.parametrize("text", ["64GiB", "", "five", True, "1 Gi"])
def test_what_is_no_quantity_is_refused(text: object) -> None:
    with pytest.raises(UsageError, match="no quantity"):
        parse_quantity(text, "limits.memory")
