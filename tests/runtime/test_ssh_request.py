"""Our own commands are started without a shell, whatever mpirun's quoting; others need one."""

from __future__ import annotations

import pytest
from azcp_runtime.contract import UsageError
from azcp_runtime.ssh.agent import Request, parse_request
from azcp_runtime.ssh.request import requested_argv

NO_SHELL = "/no/such/shell"


def test_mpiruns_daemon_is_started_from_its_words() -> None:
    command = (
        ' /opt/azcp/bin/azcp-orted -mca ess "env" -mca orte_node_regex "n[1:0],[2:10].1.1.1@0(2)" '
        '-mca orte_hnp_uri "1319.0;tcp://172.17.0.3:45953" -mca pmix "^s1,s2"'
    )
    assert requested_argv(command, NO_SHELL) == [
        *("/opt/azcp/bin/azcp-orted", "-mca", "ess", "env", "-mca", "orte_node_regex"),
        *("n[1:0],[2:10].1.1.1@0(2)", "-mca", "orte_hnp_uri", "1319.0;tcp://172.17.0.3:45953"),
        *("-mca", "pmix", "^s1,s2"),
    ]


def test_a_step_is_started_from_its_words_whatever_is_in_them() -> None:
    command = "/opt/azcp/bin/azcp-step 0 1 a 29500 sh -c 'echo $RANK; `x` | y'"
    assert requested_argv(command, NO_SHELL)[-1] == "echo $RANK; `x` | y"


@pytest.mark.parametrize(
    "command",
    [
        "echo hi",
        "/opt/azcp/bin/azcp-step 0 1 a 29500 true; rm -r /",
        "/opt/azcp/bin/azcp-step 0 1 a 29500 $HOME",
        "/opt/azcp/bin/../../../bin/true",
        "/opt/azcp/bin/azcp-step 'open",
        "PATH=/opt/azcp/bin:$PATH ; /opt/azcp/bin/azcp-orted",
    ],
)
def test_anything_else_goes_to_the_bases_shell_and_is_refused_without_one(command: str) -> None:
    assert requested_argv(command, "/bin/sh") == ["/bin/sh", "-c", command]
    with pytest.raises(UsageError, match="has no /no/such/shell"):
        requested_argv(command, NO_SHELL)


@pytest.mark.parametrize("command", [None, "", "  "])
def test_a_login_without_a_command_is_refused(command: str | None) -> None:
    with pytest.raises(UsageError, match="commands only"):
        requested_argv(command)


@pytest.mark.parametrize(
    ("words", "port"),
    [
        (["node1"], 2222),
        (["-x", "-q", "node1"], 2222),
        (["-o", "ConnectionAttempts=10", "-oStrictHostKeyChecking=no", "node1"], 2222),
        (["-p", "2300", "node1"], 2300),
        (["-p2300", "node1"], 2300),
        (["-qp", "2300", "-i", "/key", "node1"], 2300),
        (["-o", "Port=2300", "node1"], 2300),
        (["-o", "Port 2300", "--", "node1"], 2300),
    ],
)
def test_the_options_of_mpirun_and_its_operators_are_taken(words: list[str], port: int) -> None:
    request = parse_request([*words, " orted", "-mca", "ess", '"env"'], "")
    assert (request.host, request.port) == ("node1", port)
    assert request.command == ' orted -mca ess "env"'


def test_a_user_is_taken_from_the_host_or_the_option() -> None:
    assert parse_request(["me@node1", "true"], "") == Request("node1", 2222, "me", "true", reads_stdin=True)
    assert parse_request(["-l", "me", "-n", "node1", "true"], "").user == "me"
    assert not parse_request(["-n", "node1", "true"], "").reads_stdin


@pytest.mark.parametrize(
    "words", [[], ["node1"], ["-p", "x", "node1", "true"], ["a;b", "true"], ["--", "-x", "true"]]
)
def test_what_names_no_host_or_command_is_refused(words: list[str]) -> None:
    with pytest.raises(UsageError):
        parse_request(words, "")
