"""`azcp-kit nccl-report` as it is called: what it compares with, when it fails, and what it says then."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from azcp_kit.nccl.command import NcclReportCommand, run_nccl_report
from azcp_runtime.contract import ExitCode, UsageError, VerifyError

LOGS = Path(__file__).parent / "nccl"
A100 = LOGS / "a100-4-nodes.log"
H100 = LOGS / "h100-per-iteration.log"


def run(log: Path | str, capsys: pytest.CaptureFixture[str], **options: object) -> str:
    """What the report of a log prints."""
    run_nccl_report(NcclReportCommand(str(log), **options))  # type: ignore[arg-type]
    return capsys.readouterr().out


def changed(tmp_path: Path, log: Path, pattern: str, replacement: str) -> Path:
    """The log, with every match replaced."""
    text, count = re.subn(pattern, replacement, log.read_text(encoding="utf-8"))
    assert count
    (tmp_path / "job.log").write_text(text, encoding="utf-8")
    return tmp_path / "job.log"


def test_the_log_of_a_generated_job_needs_no_options(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line.split() for line in run(A100, capsys).splitlines()]
    assert ["ranks", "32", "on", "4", "nodes", "32", "ok"] in lines
    assert ["transports", "NET/IB/GDRDMA,", "P2P/IPC", "no", "TCP", "ok"] in lines
    assert ["bus", "bandwidth,", "16.0", "GiB", "186.60", "GB/s", "167.9", "GB/s", "ok"] in lines
    assert ["average", "of", "15", "sizes", "152.19", "GB/s"] in lines


def test_the_source_of_a_published_figure_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    printed = " ".join(run(A100, capsys).split())
    assert "90 % of 186.6 GB/s on 4 nodes (NCCL 2.19.3" in printed
    assert "vinil-v/cyclecloud-slurm-container" in printed


@pytest.mark.parametrize(
    ("options", "least"),
    [
        ({"expect": 190.0}, 171.0),
        ({"threshold": 0.5}, 93.3),
        ({"sku": "nd96isr_h200_v5", "threshold": 0.3}, 145.0),
    ],
)
def test_options_come_over_what_the_log_says(
    options: dict[str, object], least: float, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"{least} GB/s" in run(A100, capsys, **options)


def test_below_the_threshold_it_fails_with_the_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(VerifyError, match=r"186\.60 GB/s \(less than 90 % of the 300 GB/s") as caught:
        run(A100, capsys, expect=300.0)
    assert caught.value.exit_code is ExitCode.VERIFY
    assert "fail" in capsys.readouterr().out


def test_exactly_the_threshold_is_enough(capsys: pytest.CaptureFixture[str]) -> None:
    run(A100, capsys, expect=186.60, threshold=1.0)


def test_tcp_on_a_size_with_infiniband_is_a_failure_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = changed(tmp_path, A100, r"NET/IB/(\d)/GDRDMA", r"NET/Socket/\1")
    with pytest.raises(
        VerifyError, match="NET/Socket is TCP over Ethernet, but Standard_ND96asr_v4 has InfiniBand"
    ):
        run(log, capsys)


def test_missing_gpu_direct_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "without GPUDirect RDMA" in run(changed(tmp_path, A100, "/GDRDMA", ""), capsys)


def test_wrong_results_fail_however_fast_they_were(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = changed(tmp_path, H100, r"(471\.37)       0", r"\1       3")
    with pytest.raises(VerifyError, match=r"wrong results 6 \(data were corrupted"):
        run(log, capsys, expect=470.0)


def test_what_the_test_itself_counts_as_wrong_fails_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = changed(tmp_path, LOGS / "v100-before-2.13.log", "values : 0 OK", "values : 6 FAILED")
    with pytest.raises(VerifyError, match="wrong results 6 out of bounds"):
        run(log, capsys, expect=11.0)


def test_a_log_that_stops_early_fails_and_says_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = A100.read_text(encoding="utf-8")
    cut = (
        text[: text.index("  8589934592")]
        + "slurmstepd: error: *** STEP 7.1 ON hpc-1 CANCELLED DUE TO TIME LIMIT\n"
    )
    (tmp_path / "job.log").write_text(cut, encoding="utf-8")
    with pytest.raises(VerifyError, match=r"end at 4\.00 GiB .*CANCELLED DUE TO TIME LIMIT"):
        run(tmp_path / "job.log", capsys, expect=100.0)


def test_ranks_that_tested_alone_are_no_test_of_the_fabric(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = changed(tmp_path, A100, r"Rank [ \d]\d Group", "Rank  0 Group")
    with pytest.raises(
        VerifyError, match=r"ranks 32 tests of 1 rank \(each rank tested alone: the program must"
    ):
        run(log, capsys)


def test_missing_ranks_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(VerifyError, match="ranks 32 on 4 nodes"):
        run(changed(tmp_path, A100, "ranks=32", "ranks=40"), capsys)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "give --expect GBPS, or --sku"),
        ({"sku": "Standard_ND96isr_MI300X_v5"}, "nobody published a figure for Standard_ND96isr_MI300X_v5"),
        ({"sku": "Standard_ND96isr_H100_v5"}, "the published figure is for 16.0 GiB"),
    ],
)
def test_without_a_figure_it_asks_for_one(
    options: dict[str, object], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match="nothing to compare the bandwidth with") as caught:
        run(LOGS / "mi300x-in-place.log", capsys, **options)
    assert told in caught.value.remedy
    assert "333.15 GB/s" in capsys.readouterr().out


def test_the_figure_of_several_nodes_is_none_for_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = changed(tmp_path, H100, "ccw-gpu-2", "ccw-gpu-1")
    with pytest.raises(UsageError) as caught:
        run(log, capsys, sku="Standard_ND96isr_H100_v5")
    assert "one node of Standard_ND96isr_H100_v5" in caught.value.remedy


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is it the output of the job"),
        ("#  Rank  0 Group  0 Pid   4100 on      hpc-1 device  0 [0x00] A100\n", "the test began"),
        (
            "/x/all_reduce_perf: error while loading: cannot open shared object\n",
            "look at its line '/x/all_reduce",
        ),
        ("h:1:2 [0] net.cc:1 NCCL WARN \x1b]0;title\x07\n", r"NCCL WARN \x1b]0;title\x07'"),
    ],
)
def test_without_a_table_it_says_where_to_look(
    text: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job.log").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="has no table") as caught:
        run(tmp_path / "job.log", capsys)
    assert caught.value.exit_code is ExitCode.USAGE
    assert told in caught.value.remedy


def test_json_has_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(run(A100, capsys, as_json=True))
    assert (told["verdict"], told["ranks"], told["nodes"]) == ("ok", 32, 4)
    assert told["rows"][-1]["out_of_place"] == {"busbw_gbps": 186.6, "wrong": None}
    assert {finding["name"]: finding["verdict"] for finding in told["findings"]}["wrong results"] == "open"


def test_json_is_printed_before_it_fails(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(VerifyError):
        run(A100, capsys, expect=300.0, as_json=True)
    assert json.loads(capsys.readouterr().out)["verdict"] == "fail"


def test_a_pipe_can_be_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(A100.read_bytes())))
    assert "186.60 GB/s" in run("-", capsys)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"expect": 0.0}, "--expect 0 is no number above 0"),
        ({"threshold": float("nan")}, "--threshold nan"),
        ({"sku": "Standard_D2"}, "no VM size"),
    ],
)
def test_wrong_options_are_refused(
    options: dict[str, object], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match=told):
        run(A100, capsys, **options)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match=r"none\.log cannot be read: No such file"):
        run(tmp_path / "none.log", capsys)
