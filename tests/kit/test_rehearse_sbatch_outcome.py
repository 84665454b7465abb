"""What a rehearsal on a Slurm reads of a job, its log and its nodes, and what it makes of them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

import pytest
from azcp_kit.rehearse.account import Emulator
from azcp_kit.rehearse.cargo import Cargo
from azcp_kit.rehearse.command import RehearseCommand, run_rehearse
from azcp_kit.rehearse.outcome import NodeData
from azcp_kit.rehearse.slurm.compare import parse_sums
from azcp_kit.rehearse.slurm.conclude import End, conclude
from azcp_kit.rehearse.slurm.said import Said, first_reason
from azcp_kit.rehearse.slurm.script import BatchScript, read_script
from azcp_kit.rehearse.slurm.submit import exports, parse_state
from azcp_runtime.contract import ExitCode, UsageError

EMULATOR: Final = Emulator("http://10.1.2.3:10000", "c2VjcmV0a2V5")
CARGO: Final = Cargo(Path("/nowhere"), {"a": "1"}, 1)
LINE: Final = (
    "JobId=7 JobName=llama UserId=root(0) JobState=RUNNING Reason=None Dependency=(null) Requeue=1 "
    "Restarts=2 BatchFlag=1 ExitCode=0:0 NodeList=node[1-3] BatchHost=node1 NumNodes=3 Command=/x/JobState=y"
)


def script(*lines: str) -> BatchScript:
    text = ["#!/bin/bash", "#SBATCH --job-name=llama", "#SBATCH --nodes=3", *lines]
    text.append("srun azcp-launch https://models.blob.core.windows.net/data/llama /mnt/nvme/llama")
    return read_script("\n".join(text))


def said(*pieces: bytes) -> tuple[Said, list[str]]:
    told: list[str] = []
    found = Said(EMULATOR, lambda: 1.5, lambda _at, _who, what: told.append(what))
    for piece in pieces:
        found.take(piece)
    found.end()
    return found, told


def end(*, is_good: bool, code: int = 0) -> End:
    return End(
        title="job 7",
        nodes="node[1-3]",
        phase="COMPLETED" if is_good else "FAILED",
        code=code,
        is_good=is_good,
        reason="" if is_good else f"the script has ended with {code}",
        notices=(),
        started_s=1.0,
        ended_s=2.0,
        took_s=3.0,
    )


def test_the_state_of_a_job_is_read_from_its_line() -> None:
    state = parse_state(LINE)
    assert state is not None
    assert (state.state, state.nodes, state.code, state.restarts, state.is_over) == (
        "RUNNING",
        "node[1-3]",
        0,
        2,
        False,
    )
    failed = parse_state(LINE.replace("RUNNING", "FAILED").replace("ExitCode=0:0", "ExitCode=0:9"))
    assert failed is not None
    assert (failed.code, failed.is_over) == (137, True)
    assert parse_state("slurm_load_jobs error: Invalid job id specified\n") is None


@pytest.mark.parametrize(
    ("directive", "has_sas", "told"),
    [
        ("#SBATCH --requeue", True, "ALL,AZCP_SAS"),
        ("#SBATCH --requeue", False, "ALL"),
        ("#SBATCH --export=NONE", True, "AZCP_SAS"),
        ("#SBATCH --export=NONE", False, "NONE"),
        ("#SBATCH --export=A,B=c", True, "A,B=c,AZCP_SAS"),
    ],
)
def test_the_environment_is_the_scripts_own_and_the_way_in(directive: str, has_sas: bool, told: str) -> None:
    assert exports(script(directive), has_sas=has_sas) == told


def test_the_log_is_told_by_lines_and_without_secrets() -> None:
    log, told = said(b"[list] 5 fi", b"les\nsig=abc%2B key c2VjcmV0a2V5\n\n0: [total] T=1", b"s\nphase 2\n")
    assert told == ["[list] 5 files", "0: [total] T=1s"]
    assert [line.text for line in log.tail(has_failed=False)] == ["sig=*** key ***", "phase 2"]
    assert log.distributed_s == pytest.approx(1.5)
    assert len(log.tail(has_failed=True)) == 4


def test_a_failure_is_told_in_the_words_of_whoever_knows() -> None:
    log, _ = said(b"hello\nazcp-launch: node2 did not come\nTraceback\n")
    assert first_reason(8, log.lines) == "the script has ended with 8: azcp-launch: node2 did not come"
    assert first_reason(8, []) == "the script has ended with 8"


def test_sums_are_read_by_names_of_any_bytes() -> None:
    digest = hashlib.sha256(b"x").hexdigest()
    assert parse_sums(f"{digest}  ./a\nb\0{digest}  ./c  d\0".encode()) == {"a\nb": digest, "c  d": digest}


def test_a_job_that_ended_well_with_the_data_everywhere_is_a_success() -> None:
    data = [NodeData("job 7", f"node{index}", "/mnt/nvme/llama", ()) for index in range(3)]
    outcome = conclude(script(), 3, CARGO, said(b"[total] T=1s\n")[0], end(is_good=True), data, ())
    assert outcome.exit_code is ExitCode.DONE
    assert outcome.pods[0].ready_s == pytest.approx(1.5)
    other = NodeData("job 7", "node2", "/mnt/nvme/llama", ("a has other bytes",))
    outcome = conclude(script(), 3, CARGO, said()[0], end(is_good=True), [*data, other], ())
    assert outcome.exit_code is ExitCode.VERIFY


def test_a_job_that_failed_before_the_data_was_there_is_not_compared() -> None:
    data = [NodeData("job 7", "node1", "/mnt/nvme/llama", ("a is missing",))]
    outcome = conclude(script(), 3, CARGO, said()[0], end(is_good=False, code=8), data, ())
    assert outcome.exit_code is ExitCode.PREFLIGHT
    assert outcome.data == ()
    assert outcome.cut_short == ("sbatch llama",)
    assert outcome.pods[0].containers[-1].has_failed


def test_the_command_knows_a_batch_script_by_its_lines(tmp_path: Path) -> None:
    file = tmp_path / "job.sbatch"
    file.write_text("#!/bin/bash\n#SBATCH --array=1-2\nsrun hostname\n", encoding="utf-8")
    command = RehearseCommand(
        manifest=file,
        nodes=None,
        images=(),
        pulls=False,
        timeout_s=10.0,
        size="1MiB",
        until="end",
        late=(),
        kills=(),
        as_json=True,
    )
    with pytest.raises(UsageError, match="job arrays"):
        run_rehearse(command)
