"""What the two phases start, and what the user's command finds in its environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from azcp_runtime.contract import UsageError
from azcp_runtime.launch.command import is_whole, parse_launch, phase_one_code, without_secret
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
    env: dict[str, str] = {}
    address = "https://a.blob.core.windows.net/c/p/"
    launch = without_secret(
        parse_launch([f"{address}?sv=1&sig=s3cret", "/d", "--verify", "--", "x"], {}), env
    )
    assert list(launch.distribute) == [address, "/d", "--verify"]
    assert env == {"AZCP_SAS": "sv=1&sig=s3cret"}


@pytest.mark.parametrize(("code", "told"), [(0, 0), (3, 3), (75, 75), (205, 6), (137, 6), (255, 6)])
def test_a_code_that_is_not_ours_means_a_lost_node(code: int, told: int) -> None:
    assert phase_one_code(code) == told


@pytest.mark.parametrize("option", [["--dry-run"], ["--stage", "list"]])
def test_a_command_waits_for_data_that_is_whole(option: list[str]) -> None:
    assert not is_whole(["/s", "/d", *option])
    assert is_whole(["/s", "/d"])


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
    }


def test_a_daemon_without_the_containers_environment_finds_what_it_needs(tmp_path: Path) -> None:
    container = Surroundings({"AZURE_CLIENT_ID": "i", "LD_PRELOAD": "/x"}, "/", 2300)
    remember(tmp_path, CONTAINER, container)
    env = daemon_environment({"PATH": "/usr/bin", "OPAL_PREFIX": "/hpcx"}, tmp_path, 1000)
    assert env["AZURE_CLIENT_ID"] == "i"
    assert env["AZCP_SSH_PORT"] == "2300"
    assert env["OPAL_PREFIX"] == "/opt/azcp/openmpi"
    assert "LD_PRELOAD" not in env


def test_launch_options_stand_anywhere_and_the_rest_goes_on() -> None:
    words = [
        "/s",
        "--hosts",
        "a,b",
        "/d",
        "--compare",
        "size",
        "--wait=5",
        "--",
        "sh",
        "-c",
        "x -- y",
        "--hosts",
    ]
    launch = parse_launch(words, {})
    assert (launch.hosts, launch.wait_s, launch.port) == ("a,b", 5.0, 2222)
    assert launch.distribute == ["/s", "/d", "--compare", "size"]
    assert launch.words == ["sh", "-c", "x -- y", "--hosts"]


def test_the_port_is_the_environments_unless_an_option_says_another() -> None:
    env = {"AZCP_SSH_PORT": "2300"}
    assert parse_launch(["/s", "/d"], env).port == 2300
    assert parse_launch(["/s", "/d", "--port", "2400"], env).port == 2400


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["/s"], "DEST"),
        (["/s", "/d", "--bogus"], "--bogus"),
        (["/s", "/d", "--wait", "-1"], "no time"),
        (["/s", "/d", "--port", "70000"], "no port"),
        (["/s", "/d", "--shard-size", "huge"], "not a size"),
    ],
)
def test_what_either_command_would_refuse_is_refused_before_any_node_is_asked(
    words: list[str], reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_launch(words, {})
