"""What a rehearsal has shown becomes a table, JSON and an exit code; options become a request or an error."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from azcp_kit.rehearse.command import RehearseCommand, read_manifest, run_rehearse
from azcp_kit.rehearse.holder import holder_image, holder_program
from azcp_kit.rehearse.outcome import ContainerEnd, Line, NodeData, Outcome, PodEnd, Verdict, WorkloadEnd
from azcp_kit.rehearse.request import Kill, parse_images, parse_kills, parse_late
from azcp_kit.rehearse.table import print_outcome
from azcp_runtime.contract import ExitCode, PreflightError, UsageError
from rich.console import Console

from tests.lab.waiting import wait_until

MAIN = ContainerEnd(
    1, "main", "main", 1, 0, 2.5, (Line(1.0, "[total] T=2.00s"),), False, (Line(2.0, "phase 2"),)
)
POD = PodEnd("Job a", "a-0", "node-0", "ends well", Verdict.OK, "succeeded", "", 1, 0.0, 1.0, 3.5, (MAIN,))
DATA = NodeData("a-0", "node-0", "/data", ())
GOOD = Outcome(
    nodes=3,
    manifest_nodes=16,
    took_s=3.5,
    files=10,
    size_bytes=1 << 20,
    workloads=(WorkloadEnd("Job a", Verdict.OK, "", 0, ("it is small",)),),
    pods=(POD,),
    data=(DATA,),
    destinations=("/data",),
    cut_short=(),
    made_up=("Secret s: key",),
    unshown=("nvidia.com/gpu: there is none here",),
    skipped=("Workflow w",),
)
BAD_POD = replace(
    POD,
    verdict=Verdict.FAILED,
    phase="failed",
    reason="main ended with 7",
    containers=(
        replace(MAIN, code=7, has_failed=True, tail=(Line(1.5, "no GPU"),)),
        replace(MAIN, start=2, code=None, summary=(), tail=()),
    ),
)
DIFFERENT = replace(GOOD, data=(DATA, NodeData("a-1", "node-1", "/data", ("x is missing",))))


def printed(outcome: Outcome) -> str:
    stream = io.StringIO()
    print_outcome(outcome, Console(file=stream, width=160, highlight=False))
    return stream.getvalue()


def test_a_good_outcome_says_what_was_seen_and_what_was_not() -> None:
    text = printed(GOOD)
    for part in (
        "rehearsed with 3 nodes of the manifest's 16 in 3.50 s",
        "ok  Job a",
        "it is small",
        "succeeded [main 0]",
        "1.00 s  [total] T=2.00s",
        "2.00 s  phase 2",
        "data identical on 1 nodes (10 files, 1.00 MiB, every byte compared)",
        "Secret s: key",
        "nvidia.com/gpu: there is none here",
        "Workflow w",
    ):
        assert part in text
    assert GOOD.exit_code is ExitCode.DONE


def test_a_failure_is_told_with_every_start_and_the_last_lines() -> None:
    bad = replace(GOOD, pods=(BAD_POD,))
    text = printed(bad)
    assert "failed: main ended with 7 [main 7, then was running]" in text
    assert "a-0, main failed with 7:" in text
    assert "1.50 s  no GPU" in text
    assert bad.exit_code is ExitCode.PREFLIGHT


def test_nodes_whose_data_differs_are_named() -> None:
    assert "data identical on 1 of 2 nodes" in printed(DIFFERENT)
    assert "a-1 /data: x is missing" in printed(DIFFERENT)
    assert DIFFERENT.exit_code is ExitCode.VERIFY


def test_data_that_was_not_compared_is_told_with_the_reason() -> None:
    none = replace(GOOD, data=())
    assert "no pod that ran has a volume at /data: nothing was compared" in printed(none)
    assert "no command tells where the data goes" in printed(replace(none, destinations=()))
    text = printed(replace(none, cut_short=("Job a",)))
    assert "no data: phase 1 did not finish (Job a)" in text
    assert "nothing was compared" not in text


def test_a_pod_that_never_started_is_no_failed_one() -> None:
    waiting = replace(
        POD, verdict=Verdict.NOT_STARTED, phase="not started", pods=0, made_s=None, ready_s=None, ended_s=None
    )
    missed = replace(GOOD, pods=(replace(waiting, containers=()),))
    (line,) = [line for line in printed(missed).splitlines() if "a-0" in line]
    assert line.startswith("not started")
    assert "waiting" not in line
    assert missed.exit_code is ExitCode.PREFLIGHT


def test_json_has_everything_and_the_exit_code() -> None:
    found = json.loads(DIFFERENT.to_json())
    assert found["exit_code"] == 7
    assert found["pods"][0]["verdict"] == "ok"
    assert found["pods"][0]["containers"][0]["summary"] == [{"at_s": 1.0, "text": "[total] T=2.00s"}]
    assert found["data"][1]["differences"] == ["x is missing"]


def test_faults_and_images_are_read_from_options() -> None:
    assert parse_late(["a-1=30", "b=0.5s"]) == {"a-1": 30.0, "b": 0.5}
    assert parse_kills(["a=phase1/2", "b=start"]) == (Kill("a", "phase1", 2.0), Kill("b", "start", 0.0))
    assert parse_images(["reg/train:1=local:2", "other"]) == {"reg/train:1": "local:2", "": "other"}


@pytest.mark.parametrize("text", ["a", "a=", "a=x", "=1", "a=phase3/1"])
def test_faults_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--kill"):
        parse_kills([text])
    with pytest.raises(UsageError, match="--late"):
        parse_late([text])


@pytest.mark.parametrize("text", ["", "a=", "=b"])
def test_images_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--image"):
        parse_images([text])


def command(manifest: Path, until: str = "end", timeout_s: float = 1.0) -> RehearseCommand:
    return RehearseCommand(manifest, None, (), False, timeout_s, "1MiB", until, (), (), False)


def test_options_are_refused_before_the_engine_is_asked(tmp_path: Path) -> None:
    manifest = tmp_path / "m.yaml"
    manifest.write_text("kind: Namespace\nmetadata: {name: n}\n", encoding="utf-8")
    for wrong, said in (
        (command(manifest, until="soon"), "neither end nor distributed"),
        (command(manifest, timeout_s=0), "--timeout"),
        (command(manifest), "makes no pods"),
        (command(tmp_path / "none.yaml"), "cannot be read"),
    ):
        with pytest.raises(UsageError, match=said):
            run_rehearse(wrong)


def test_a_manifest_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="no text in UTF-8"):
        read_manifest(tmp_path / "m")


def test_the_holder_runs_here_until_it_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "holder"
    program.write_bytes(holder_program(os.uname().machine))
    program.chmod(0o755)
    with subprocess.Popen([program]) as running:
        state = Path(f"/proc/{running.pid}/stat")
        wait_until(lambda: state.read_text().rpartition(") ")[2].startswith("S"), 10, "it sleeps")
        running.terminate()
        assert running.wait(10) == -15


def test_the_holders_image_is_one_executable_of_a_few_bytes() -> None:
    assert len(holder_program("arm64")) < 200
    assert b"holder" in holder_image("amd64")
    with pytest.raises(PreflightError, match="riscv64"):
        holder_program("riscv64")


def test_the_command_line_loads_neither_the_engine_nor_yaml() -> None:
    script = (
        "import sys, azcp_kit.rehearse.command; print(sorted({'docker', 'yaml', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
