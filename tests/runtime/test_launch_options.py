"""A command line of azcp-launch that cannot be meant is refused at once, with all that is wrong in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from azcp_runtime.contract import PreflightError, UsageError, WriteError
from azcp_runtime.launch.node_file import check_node_file, write_node_file
from azcp_runtime.launch.options import is_whole, parse_launch


def test_launch_options_stand_anywhere_and_the_rest_goes_on() -> None:
    words = [
        *("/s", "--hosts", "a,b", "/d", "--compare", "size", "--wait=5"),
        *("--", "sh", "-c", "x -- y", "--hosts"),
    ]
    launch = parse_launch(words, {})
    assert (launch.hosts, launch.wait_s, launch.port) == ("a,b", 5.0, 2222)
    assert launch.distribute == ["/s", "/d", "--compare", "size"]
    assert launch.words == ["sh", "-c", "x -- y", "--hosts"]
    assert (launch.is_every_node, launch.nodes, launch.alone_after_s, launch.command_on) == (
        *(False, None, None),
        "nodes",
    )


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
        (["/s", "/d", "--nodes", "0"], "no number of nodes"),
        (["/s", "/d", "--shard-size", "huge"], "not a size"),
        (["/s", "/d", "--hosts=a", "--hostfile=b"], "both name the nodes"),
        (["/s", "/d", "--hosts=a", "--alone-after=1"], "--alone-after .* needs --every-node"),
        (["/s", "/d", "--alone-after=1", "--", "x"], "for data alone"),
        (["/s", "/d", "--alone-after=1", "--expect-ranks=2"], "--expect-ranks wants their number"),
        (["/s", "/d", "--hosts=a", "--node-file=/x"], "--node-file .* needs --every-node"),
        (["/s", "/d", "--node-file=/x"], "needs NODE_NAME in the environment"),
        (["/s", "/d", "--node-file=/x", "--dry-run"], "leave it incomplete"),
        (["/s", "/d", "--command-on=launcher"], "needs a COMMAND"),
        (["/s", "/d", "--command-on=master", "--", "x"], "invalid choice"),
    ],
)
def test_what_either_command_would_refuse_is_refused_before_any_node_is_asked(
    words: list[str], reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_launch(words, {})


def test_all_that_is_wrong_is_told_at_once() -> None:
    words = ["/s", "/d", "--hosts=a", "--hostfile=b", "--alone-after=1", "--command-on=nodes", "--bogus"]
    with pytest.raises(UsageError) as caught:
        parse_launch(words, {})
    for reason in ("both name", "needs --every-node", "needs a COMMAND", "--bogus"):
        assert reason in str(caught.value)


def test_the_leader_may_run_the_command_of_alike_nodes() -> None:
    words = ["/s", "/d", "--hosts=a[0-1]", "--every-node", "--command-on=launcher", "--", "x"]
    assert parse_launch(words, {}).command_on == "launcher"


@pytest.mark.parametrize("option", [["--dry-run"], ["--stage", "list"]])
def test_a_command_waits_for_data_that_is_whole(option: list[str]) -> None:
    assert not is_whole(["/s", "/d", *option])
    assert is_whole(["/s", "/d"])


def test_a_node_file_is_replaced_at_once_and_everybody_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "node"
    path.write_text("of an earlier run, with a longer name")
    check_node_file(path)
    write_node_file(path, "aks-1")
    assert path.read_text() == "aks-1\n"
    assert path.stat().st_mode & 0o444 == 0o444
    assert list(tmp_path.iterdir()) == [path]


def test_a_node_file_that_cannot_be_written_is_told_before_the_data_is_fetched(tmp_path: Path) -> None:
    with pytest.raises(PreflightError, match="there is no folder"):
        check_node_file(tmp_path / "absent/node")
    with pytest.raises(PreflightError, match="is a folder"):
        check_node_file(tmp_path)
    with pytest.raises(WriteError, match="cannot be written"):
        write_node_file(tmp_path / "absent/node", "aks-1")
