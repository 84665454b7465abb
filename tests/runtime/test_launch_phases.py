"""What the two phases start, and what the user's command finds in its environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from azcp_runtime.contract import UsageError
from azcp_runtime.launch.discovery.find import ALONE
from azcp_runtime.launch.job import job_of
from azcp_runtime.launch.lead import phase_one_code
from azcp_runtime.launch.options import parse_launch
from azcp_runtime.launch.orted import daemon_environment
from azcp_runtime.launch.phases import (
    Nodes,
    distribute_arguments,
    expectation,
    hostfile_text,
    step_argv,
)
from azcp_runtime.launch.step import Place, read_step, step_environment
from azcp_runtime.ssh.state import CONTAINER, Surroundings, remember

NODES = Nodes({"b": "10.0.0.2", "a": "10.0.0.1"}, Path("/run/azcp/hostfile"))


def test_the_hostfile_has_addresses_in_the_order_of_the_ranks() -> None:
    assert hostfile_text(NODES) == "10.0.0.2 slots=1\n10.0.0.1 slots=1\n"


def test_one_rank_of_azcp_distribute_runs_on_each_node() -> None:
    arguments = distribute_arguments(NODES, ["/s", "/d"], {"PATH": "/bin"})
    assert arguments == [
        *("--quiet", "-np", "2", "--hostfile", "/run/azcp/hostfile", "--map-by", "ppr:1:node"),
        *("/opt/azcp/bin/azcp-distribute", "/s", "/d"),
    ]


def test_a_sas_of_the_source_goes_to_the_environment() -> None:
    address = "https://a.blob.core.windows.net/c/p/"
    launch = parse_launch([f"{address}?sv=1&sig=s3cret", "/d", "--verify", "--port=2300", "--", "x"], {})
    job = job_of(launch, ALONE, Surroundings({}, "/"), {"PATH": "/bin"}, Path("/state"))
    assert list(job.launch.distribute) == [address, "/d", "--verify"]
    assert job.env == {"PATH": "/bin", "AZCP_SAS": "sv=1&sig=s3cret", "AZCP_SSH_PORT": "2300"}


@pytest.mark.parametrize(("code", "told"), [(0, 0), (3, 3), (75, 75), (205, 6), (137, 6), (255, 6)])
def test_a_code_that_is_not_ours_means_a_lost_node(code: int, told: int) -> None:
    assert phase_one_code(code) == told


def test_no_secret_is_on_a_command_line() -> None:
    arguments = distribute_arguments(NODES, ["/s", "/d"], {"AZCP_SAS": "sig=secret"})
    assert "AZCP_SAS" in arguments
    assert "secret" not in " ".join(arguments)


def test_the_size_of_the_world_is_checked_unless_the_user_says_otherwise() -> None:
    assert expectation(["/s", "/d"], 3) == ["--expect-ranks", "3"]
    assert expectation(["/s", "/d", "--expect-ranks=2"], 3) == []
    assert expectation(["/s", "/d", "--no-broadcast"], 3) == []


def test_a_step_knows_its_place() -> None:
    argv = step_argv(NODES, 1, 29500, ["torchrun", "--x=$Y"])
    assert argv[0] == "/opt/azcp/bin/azcp-step"
    assert read_step(argv[1:]) == (Place(1, 2, "b", 29500), ["torchrun", "--x=$Y"])


@pytest.mark.parametrize("argv", [[], ["1", "2", "b", "29500"], ["x", "2", "b", "29500", "true"]])
def test_a_step_that_azcp_launch_did_not_write_is_refused(argv: list[str]) -> None:
    with pytest.raises(UsageError, match="started by azcp-launch"):
        read_step(argv)


def test_the_users_command_gets_the_containers_environment_and_its_place() -> None:
    container = Surroundings({"LD_PRELOAD": "/of/the/base.so", "OMPI_MCA_pml": "theirs"}, "/workspace")
    assert step_environment(container, Place(1, 2, "b", 29500)) == {
        **container.env,
        "RANK": "1",
        "NODE_RANK": "1",
        "NNODES": "2",
        "MASTER_ADDR": "b",
        "MASTER_PORT": "29500",
        "PET_NODE_RANK": "1",
        "PET_MASTER_ADDR": "b",
        "PET_MASTER_PORT": "29500",
    }


def test_a_daemon_without_the_containers_environment_finds_what_it_needs(tmp_path: Path) -> None:
    container = Surroundings({"AZURE_CLIENT_ID": "i", "LD_PRELOAD": "/x"}, "/", 2300)
    remember(tmp_path, CONTAINER, container)
    env = daemon_environment({"PATH": "/usr/bin", "OPAL_PREFIX": "/hpcx"}, tmp_path, 1000)
    assert env["AZURE_CLIENT_ID"] == "i"
    assert env["AZCP_SSH_PORT"] == "2300"
    assert env["OPAL_PREFIX"] == "/opt/azcp/openmpi"
    assert "LD_PRELOAD" not in env
