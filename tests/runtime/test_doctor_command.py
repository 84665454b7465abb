"""azcp-doctor as it is started: alone, and on every rank of a world."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from azcp_runtime.azure.credential import Secret
from azcp_runtime.contract import ENV_SIMULATE_NODES, ExitCode, UsageError
from azcp_runtime.doctor.bandwidth import plan_trial, rounds_for
from azcp_runtime.doctor.check import Status
from azcp_runtime.doctor.command import SCHEMA
from azcp_runtime.doctor.options import parse_options
from azcp_runtime.doctor.world_size import check_world
from azcp_runtime.mpi.ranks import Seat
from azcp_runtime.preflight.first_read import check_first_read
from azcp_runtime.source.location import BlobLocation, parse_source

from tests.lab import faults
from tests.lab.fault_account import FaultAccount
from tests.lab.faults import FOREVER, Fault, listing
from tests.lab.mpi import FOREIGN, MPIRUN
from tests.lab.stored_blobs import StoredBlob

DEADLINE_S = 120.0
DOCTOR = (sys.executable, "-m", "azcp_runtime.doctor")
ALONE = Seat(0, 1, 0, 1, 0, 1, ("n0",), (0,))


def doctor(
    *options: str, ranks: int | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith((*FOREIGN, "UCX_"))}
    settings = {"mpi_yield_when_idle": "1", "btl_vader_single_copy_mechanism": "none"}
    mca = [word for name, value in settings.items() for word in ("--mca", name, value)]
    launcher = [str(MPIRUN), "-n", str(ranks), "--oversubscribe", "--bind-to", "none", *mca] if ranks else []
    return subprocess.run(
        [*launcher, *DOCTOR, *options],
        env=clean | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} | (env or {}),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def nodes_of(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """The nodes of --json, each with its checks by name."""
    answer = json.loads(done.stdout)
    assert answer["schema"] == SCHEMA
    reports: list[dict[str, Any]] = answer["nodes"]
    return [each | {"checks": {check["name"]: check for check in each["checks"]}} for each in reports]


def test_alone_it_says_what_this_machine_has() -> None:
    done = doctor("--json")
    (node,) = nodes_of(done)
    assert done.returncode == ExitCode.DONE, done.stderr
    assert node["checks"]["world"]["found"] == "1 rank on 1 node"
    assert {"memlock", "verbs devices", "verbs providers", "transport", "/dev/shm"} <= set(node["checks"])  # noqa: S108 - its name


def test_the_table_has_a_line_for_each_check() -> None:
    done = doctor()
    lines = done.stdout.splitlines()
    assert lines[1] == "  ok    world            1 rank on 1 node"
    assert any(line.startswith("  warn  transport ") for line in lines)
    assert "--allow-tcp where TCP is meant" in done.stdout
    assert re.fullmatch(r"\d+ warnings?, nothing fails", lines[-1])


def test_a_failing_check_is_the_exit_code(tmp_path: Path) -> None:
    done = doctor("--dest", str(tmp_path / "missing" / "set"))
    assert done.returncode == ExitCode.PREFLIGHT
    assert "-> mount it, or make the folder" in done.stdout


def test_nothing_stays_in_the_destination(tmp_path: Path) -> None:
    done = doctor("--dest", str(tmp_path / "set"), "--json")
    assert nodes_of(done)[0]["checks"]["write speed"]["unit"] == "bytes/s"
    assert list(tmp_path.iterdir()) == []


def test_every_node_of_a_world_reports_once_and_its_fabric_is_measured(tmp_path: Path) -> None:
    done = doctor("--json", "--dest", str(tmp_path), ranks=4, env={ENV_SIMULATE_NODES: "2"})
    nodes = nodes_of(done)
    assert [node["node"] for node in nodes] == [0, 1], done.stderr
    for node in nodes:
        assert node["checks"]["world"]["found"] == "4 ranks on 2 nodes"
        assert node["checks"]["fabric"]["value"] > 0
        assert "TCP (ob1)" in node["checks"]["transport"]["found"]
    assert list(tmp_path.iterdir()) == []


def test_equal_nodes_share_one_table() -> None:
    done = doctor(ranks=2, env={ENV_SIMULATE_NODES: "2"})
    assert done.returncode == ExitCode.DONE, done.stderr
    assert [line for line in done.stdout.splitlines() if "world" in line] == [
        "  ok    world            2 ranks on 2 nodes"
    ]


def test_a_world_of_another_size_fails() -> None:
    done = doctor("--expect-ranks", "4", "--json", ranks=2)
    assert done.returncode == ExitCode.PREFLIGHT
    assert "--expect-ranks says 4" in nodes_of(done)[0]["checks"]["world"]["found"]


def test_mpi_that_does_not_come_up_is_explained_by_the_node_itself() -> None:
    env = {
        "OMPI_MCA_pml": "ucx",
        "OMPI_MCA_pml_ucx_tls": "any",
        "OMPI_MCA_pml_ucx_devices": "any",
        "UCX_TLS": "tcp,self",
        "UCX_NET_DEVICES": "mlx5_0:1",
    }
    done = doctor(ranks=2, env=env)
    assert done.returncode != ExitCode.DONE
    assert "MPI" in done.stdout
    assert "names mlx5_0:1, which this node has not" in done.stdout


def test_ucx_writes_nothing_into_the_answer() -> None:
    env = {
        "OMPI_MCA_pml": "ucx",
        "OMPI_MCA_pml_ucx_tls": "any",
        "OMPI_MCA_pml_ucx_devices": "any",
        "UCX_TLS": "tcp,self",
        "UCX_NET_DEVICES": "lo,mlx5_0:1",
    }
    done = doctor("--json", ranks=2, env=env)
    (node,) = nodes_of(done)
    assert node["checks"]["UCX_NET_DEVICES"]["status"] == "warn"
    assert node["checks"]["transport"]["found"].startswith("TCP (ucx)")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--need", "1TB"], "--need asks for space in --dest DIR"),
        (["--dest", ""], "DIR is empty"),
        (["--dest", "/x", "--need", "1 parsec"], "is not a size"),
        (["--expect-ranks", "0"], "is not a whole number from 1"),
    ],
)
def test_a_wrong_command_line_is_refused_with_the_reason(argv: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_options(argv)


def test_a_usage_error_has_its_own_code_and_one_line() -> None:
    done = doctor("--nonsense")
    assert done.returncode == ExitCode.USAGE
    assert done.stderr.startswith("azcp-doctor: unrecognized arguments: --nonsense")
    assert len(done.stderr.splitlines()) == 1


def test_a_step_of_a_scheduler_whose_ranks_do_not_find_each_other_fails() -> None:
    step = {"SLURM_STEP_NUM_TASKS": "4", "SLURM_NTASKS": "4", "SLURM_PROCID": "0"}
    check = check_world(ALONE, None, step)
    assert check.status is Status.FAIL
    assert "the MPI world has 1 ranks, SLURM_STEP_NUM_TASKS says 4" in check.found


def test_within_an_allocation_but_in_no_step_nothing_was_promised() -> None:
    assert check_world(ALONE, None, {"SLURM_NTASKS": "4"}).status is Status.OK


@pytest.mark.parametrize("nodes", [2, 3, 4, 16, 1024])
def test_a_trial_of_the_fabric_stays_small_on_any_number_of_nodes(nodes: int) -> None:
    trial = plan_trial(nodes)
    assert len(set(trial.roots)) == min(nodes, 4)
    assert max(trial.roots) < nodes
    assert trial.message_bytes * 4 * (nodes - 1) <= 1 << 30


def test_a_slow_fabric_is_tried_once_and_a_fast_one_longer() -> None:
    assert rounds_for(5_000_000_000) == 1
    assert rounds_for(100_000_000) == 10
    assert rounds_for(0) == 32


def test_source_and_destination_are_looked_at_as_a_run_would(tmp_path: Path) -> None:
    with FaultAccount({"a": StoredBlob(b"a")}) as account:
        done = doctor(account.url(), str(tmp_path), "--json", "--allow-tcp", env={"NO_PROXY": "*"})
    checks = nodes_of(done)[0]["checks"]
    assert done.returncode == ExitCode.DONE, done.stdout
    assert checks["identity"]["found"] == "anonymous"
    assert {"account connection", "clock", "write speed"} <= set(checks)
    assert checks["source"]["found"] == "lists and reads, first name a"
    assert checks["transport"] | {"found": ""} == {
        "name": "transport",
        "status": "ok",
        "found": "",
        "remedy": "",
    }


def test_one_name_and_one_byte_are_asked_for_by_the_first_rank_alone() -> None:
    blobs = {name: StoredBlob(b"abc") for name in ("a", "b", "c")}
    with FaultAccount(blobs | {"1": StoredBlob(b"")}) as account:
        done = doctor(account.url(), ranks=2, env={"NO_PROXY": "*", ENV_SIMULATE_NODES: "2"})
        lists = [each.request for each in account.exchanges() if each.request.is_list]
        (read,) = account.reads()
    assert done.returncode == ExitCode.DONE, done.stdout
    assert done.stdout.count("lists and reads, first name a") == 1
    assert [each.query["maxresults"] for each in lists] == ["1", "1"]
    assert (read.request.name, read.request.range) == ("a", (0, 0))


@pytest.mark.parametrize(
    ("fault", "below", "told"),
    [
        (Fault(faults.forbidden("AuthorizationPermissionMismatch"), when=listing), "", "HTTP 403 Auth"),
        (Fault(faults.error(404, "ContainerNotFound"), when=listing), "", "the container does not exist"),
        (Fault(faults.forbidden("AuthorizationFailure")), "", "it lists, but does not read: a: HTTP 403"),
        (Fault(faults.whole_instead_of_range()), "", "the endpoint ignores ranges"),
        (None, "/nope/", "nothing lies below"),
        (None, "/a", "is a blob"),
    ],
)
def test_what_a_run_would_refuse_is_a_finding(fault: Fault | None, below: str, told: str) -> None:
    always = [replace(fault, times=FOREVER)] if fault else []
    with FaultAccount({"a": StoredBlob(b"abc")}, always) as account:
        done = doctor(f"{account.url()}{below}", "--json", env={"NO_PROXY": "*"})
    check = nodes_of(done)[0]["checks"]["source"]
    assert done.returncode == ExitCode.PREFLIGHT
    assert check["status"] == "fail"
    assert told in f"{check['found']}; {check['remedy']}"
    assert done.stderr == ""


def test_a_container_that_holds_nothing_is_a_warning() -> None:
    with FaultAccount({}) as account:
        done = doctor(account.url(), "--json", env={"NO_PROXY": "*"})
    assert nodes_of(done)[0]["checks"]["source"]["status"] == "warn"


def test_an_account_that_never_ends_its_answer_is_not_waited_for() -> None:
    with FaultAccount({"a": StoredBlob(b"abc")}, [Fault(faults.never(), when=listing)]) as account:
        location = parse_source(account.url())
        assert isinstance(location, BlobLocation)
        heard: list[bool] = []
        check = check_first_read(location, Secret("anonymous"), lambda: heard.append(True), 1.0)
    assert "no answer within 1 s" in check.found
    assert heard


def test_a_sas_that_has_ended_is_a_finding_and_stays_hidden() -> None:
    sas = "sv=2022-11-02&sr=c&sp=rl&se=2020-01-01T00:00:00Z&sig=c2VjcmV0LXNpZ25hdHVyZQ%3D%3D"
    with FaultAccount({}) as account:
        done = doctor(account.url(), ranks=2, env={"AZCP_SAS": sas, "NO_PROXY": "*", ENV_SIMULATE_NODES: "2"})
    assert done.returncode == ExitCode.PREFLIGHT
    assert "fail  identity" in done.stdout
    assert "c2VjcmV0" not in done.stdout + done.stderr


def test_an_identity_without_a_token_is_a_finding_and_nothing_else_is_written() -> None:
    env = {"NO_PROXY": "*", "AZURE_POD_IDENTITY_AUTHORITY_HOST": "http://127.0.0.1:9"}
    done = doctor("https://127.0.0.1:9/devstore/data", "--auth", "managed", env=env)
    assert done.returncode == ExitCode.PREFLIGHT
    assert "fail  identity" in done.stdout
    assert done.stderr == ""


def test_a_folder_that_is_not_mounted_is_a_finding(tmp_path: Path) -> None:
    done = doctor(str(tmp_path / "missing"))
    assert done.returncode == ExitCode.PREFLIGHT
    assert "no such folder on this node" in done.stdout


@pytest.mark.parametrize("words", [["/s", "/d", "--dest", "/e"], ["--require-rdma", "--allow-tcp"]])
def test_words_that_contradict_each_other_are_refused(words: list[str]) -> None:
    with pytest.raises(UsageError):
        parse_options(words)
