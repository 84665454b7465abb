"""A report is read into trusted values or refused in one line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from azcp_kit.report import parse_report, read_report
from azcp_runtime.contract import REPORT_SCHEMA, UsageError

from tests.kit.reports import REPORT, changed

if TYPE_CHECKING:
    from pathlib import Path


def test_a_report_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(REPORT))
    report = read_report(path)
    assert (report.files, report.size_bytes, report.stage_seconds["total"]) == (2, 30, 1.5)
    assert report.ranks[0].samples.written == (0.0, 30.0)


def test_a_stage_that_did_not_take_place_may_be_absent() -> None:
    assert "verify" not in parse_report(REPORT).stage_seconds


def test_a_file_that_is_absent_or_no_json_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="absent cannot be read"):
        read_report(tmp_path / "absent")
    (tmp_path / "text").write_text("[list] 2 files")
    with pytest.raises(UsageError, match="text is not JSON"):
        read_report(tmp_path / "text")


@pytest.mark.parametrize("data", [[], {}, REPORT | {"schema": REPORT_SCHEMA + 1}])
def test_another_schema_is_refused(data: object) -> None:
    with pytest.raises(UsageError, match="schema"):
        parse_report(data)


@pytest.mark.parametrize(
    "data",
    [
        {name: value for name, value in REPORT.items() if name != "retries"},
        REPORT | {"stages": []},
        REPORT | {"nodes": "four"},
        changed(fetched_bytes=None),
        changed(cpu_seconds=float("nan")),
        changed(samples={"seconds": [0, 1], "fetched": [0], "received": [0, 0], "written": [0, 0]}),
        changed(samples={"seconds": [1, 0], "fetched": [0, 0], "received": [0, 0], "written": [0, 0]}),
        changed(samples={"seconds": [-1e308, 1], "fetched": [0, 0], "received": [0, 0], "written": [0, 0]}),
        changed(samples={"seconds": [0, 1], "fetched": [0, 1e308], "received": [0, 0], "written": [0, 0]}),
        changed(samples="\x1b[31mred"),
        changed(fetched_bytes=10**400),
        REPORT | {"nodes": 10**400},
    ],
)
def test_a_report_with_a_part_missing_or_of_another_kind_is_refused(data: object) -> None:
    with pytest.raises(UsageError, match="incomplete") as caught:
        parse_report(data)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400


def test_a_file_that_is_nested_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("[" * 200_000 + "]" * 200_000)
    with pytest.raises(UsageError, match="nested too deeply"):
        read_report(path)


def test_texts_of_a_report_drive_nothing_and_are_short() -> None:
    hostile = "\ud800\x1b]0;title\x07" + "A" * 1_000_000
    data = changed(host=hostile) | {
        "source": hostile,
        "retries": {hostile: 1},
        "versions": {hostile: hostile},
    }
    report = parse_report(data)
    for text in (report.source, report.ranks[0].host, *report.retries, *report.facts):
        assert text.isprintable()
        assert len(text) < 1100
        assert text.encode()


def test_times_that_a_run_does_not_tell_apart_are_one() -> None:
    samples = {"seconds": [0, 5e-324], "fetched": [0, 1], "received": [0, 0], "written": [0, 0]}
    assert parse_report(changed(samples=samples)).ranks[0].samples.seconds == (0, 0)
