"""Every node runs the same command: number 0 leads, and the others end as it ends, however it ends."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.lab.alike import SILENCE_S, Alike, Lab
from tests.lab.ssh import make_keys, node
from tests.lab.waiting import wait_until

SOON_S = 8.0
UNTIL_TOLD = (
    'touch "{folder}/began"; while [ ! -e "{folder}/end" ]; do sleep 0.05; done; exit $(cat "{folder}/end")'
)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """Three nodes whose phase 1 lasts until it is told to end."""
    made = Lab(tmp_path, 3, UNTIL_TOLD.format(folder=tmp_path))
    made.prepare()
    return made


@pytest.fixture
def quick(tmp_path: Path) -> Lab:
    """Three nodes whose phase 1 takes no time."""
    made = Lab(tmp_path, 3, "exit 0")
    made.prepare()
    return made


def began(lab: Lab) -> None:
    """Wait until phase 1 runs."""
    logs = [path.read_text() for path in lab.folder.glob("log*")]
    wait_until((lab.folder / "began").exists, 30, f"phase 1 begins\n{logs}")


def end(lab: Lab, code: int) -> None:
    """Let phase 1 end."""
    (lab.folder / "end").write_text(str(code))


@pytest.fixture
def running(lab: Lab) -> Iterator[list[Alike]]:
    """Three nodes in phase 1."""
    with lab.nodes() as nodes:
        began(lab)
        yield list(nodes)


def test_all_end_with_0_where_the_leader_does(lab: Lab, running: list[Alike]) -> None:
    end(lab, 0)
    assert [node.code(SOON_S) for node in running] == [0, 0, 0]
    assert running[1].says("done, as the leader is")


def test_the_leaders_failure_is_that_of_the_members(lab: Lab, running: list[Alike]) -> None:
    end(lab, 5)
    assert [node.code(SOON_S) for node in running] == [5, 5, 5]
    assert running[2].says("the leader 127.0.0.2 has ended with 5: azcp-distribute ended with 5")


def test_a_leader_that_is_killed_ends_its_members_with_6(running: list[Alike]) -> None:
    running[0].process.kill()
    assert [node.code(SOON_S) for node in running[1:]] == [6, 6]
    assert running[1].says("the leader 127.0.0.2 is gone: it was killed, or its connection is lost")


def test_a_member_that_is_killed_ends_all_others_with_6_and_is_named(running: list[Alike]) -> None:
    running[2].process.kill()
    assert [node.code(SOON_S + 5) for node in running[:2]] == [6, 6]
    assert running[0].says("127.0.0.4: it was killed, or its connection is lost")
    assert running[1].says("the leader 127.0.0.2 has ended with 6: 127.0.0.4: it was killed")


def test_a_member_that_is_told_to_end_does_so_with_75_and_fails_the_run(running: list[Alike]) -> None:
    running[1].process.send_signal(signal.SIGTERM)
    assert running[1].code(SOON_S) == 75
    assert [running[0].code(SOON_S + 5), running[2].code(SOON_S)] == [75, 75]
    assert running[0].says("127.0.0.3: stopped by SIGTERM")


def test_a_leader_that_is_told_to_end_tells_its_members(running: list[Alike]) -> None:
    running[0].process.send_signal(signal.SIGTERM)
    assert [node.code(SOON_S) for node in running] == [75, 75, 75]


@pytest.mark.parametrize("silent", [0, 1])
def test_who_falls_silent_is_lost(tmp_path: Path, silent: int) -> None:
    lab = Lab(tmp_path, 3, UNTIL_TOLD.format(folder=tmp_path), silence_s=SILENCE_S)
    lab.prepare()
    with lab.nodes() as nodes:
        began(lab)
        nodes[silent].process.send_signal(signal.SIGSTOP)
        others = [node for index, node in enumerate(nodes) if index != silent]
        assert [node.code(SOON_S + 10) for node in others] == [6, 6]
        assert others[0].says("no sign of life for 2 s")


def test_no_leader_within_the_deadline_is_8_and_names_it(quick: Lab) -> None:
    with quick.node(1, "--wait=0.5") as member:
        assert member.code() == 8
        assert member.says(r"the leader 127.0.0.2 did not come within 0 s \(its name is that of 127.0.0.2\)")


def test_a_member_that_never_comes_is_named_and_the_others_end_with_8(quick: Lab) -> None:
    with quick.node(0, "--wait=3") as leader, quick.node(1, "--wait=30") as member:
        assert [leader.code(), member.code(SOON_S)] == [8, 8]
        assert leader.says("1 of 3 nodes are missing after 3 s: 127.0.0.4: refused")
        assert member.says("has ended with 8: 1 of 3 nodes are missing")


def test_a_member_that_comes_late_is_waited_for(quick: Lab) -> None:
    with quick.node(0) as leader, quick.node(1) as member:
        member.wait_says("the leader 127.0.0.2 is there")
        with quick.node(2) as late:
            assert [node.code() for node in (leader, member, late)] == [0, 0, 0]


def test_a_member_that_starts_again_while_others_are_waited_for_is_met_again(quick: Lab) -> None:
    with quick.node(0) as leader:
        with quick.node(1) as first:
            first.wait_says("the leader 127.0.0.2 is there")
        with quick.node(1) as second, quick.node(2) as late:
            assert [node.code() for node in (leader, second, late)] == [0, 0, 0]


def test_the_command_runs_on_each_node_with_its_place(quick: Lab) -> None:
    script = "echo place $RANK $NNODES $MASTER_ADDR of $LAB_NODE"
    with quick.nodes("--", "sh", "-c", script) as nodes:
        assert [node.code() for node in nodes] == [0, 0, 0]
        for rank in range(3):
            assert nodes[0].says(f"place {rank} 3 127.0.0.2 of {rank}\n")


def test_the_commands_failure_is_everybodys(quick: Lab) -> None:
    script = "test $RANK = 1 && exit 7; exec sleep 60"
    with quick.nodes("--", "sh", "-c", script) as nodes:
        assert [node.code() for node in nodes] == [7, 7, 7]
        assert nodes[0].says("127.0.0.3: the command ended with 7 and the others are asked to end")


def test_a_member_that_is_killed_in_phase_2_is_6(quick: Lab) -> None:
    with quick.nodes("--", "sh", "-c", "echo ready; exec sleep 60") as nodes:
        wait_until(lambda: nodes[0].log.count("ready\n") == 3, 30, "the command runs everywhere")
        nodes[2].process.kill()
        assert [node.code(SOON_S) for node in nodes[:2]] == [6, 6]


def test_a_stranger_is_no_leader(quick: Lab, tmp_path: Path) -> None:
    stranger = make_keys(tmp_path / "stranger")
    with quick.node(1) as member, quick.node(0, keys=stranger) as leader:
        assert leader.code() == 8
        assert leader.says("127.0.0.3: .* has a host key that the job's key has not signed")
        member.process.send_signal(signal.SIGTERM)
        assert member.code(SOON_S) == 75
        assert not member.says("is there")


def test_a_node_with_azcp_sshd_alone_is_told_as_such(quick: Lab) -> None:
    with node(quick.folder / "plain", quick.keys, address="127.0.0.3", port=quick.port):
        lab = Lab(quick.folder, 2, "", port=quick.port)
        with lab.node(0, "--wait=3") as leader:
            assert leader.code() == 8
            assert leader.says("127.0.0.3: azcp-tether: azcp-launch does not serve here")


def test_who_does_not_come_is_left_out_and_the_rest_go_on(quick: Lab) -> None:
    with quick.node(0, "--alone-after=3") as leader, quick.node(1, "--alone-after=30") as member:
        assert [leader.code(), member.code()] == [0, 0]
        assert leader.says(r"1 of 3 nodes are left out after 3 s: 127.0.0.4 \(refused\)")


@pytest.mark.parametrize("index", [0, 1])
def test_without_any_peer_a_node_downloads_alone(quick: Lab, index: int) -> None:
    (quick.source / "file").write_bytes(b"content")
    target = quick.folder / "node"
    with quick.node(
        index, "--alone-after=0.5", "--no-progress", f"--node-file={target}", env={"NODE_NAME": "aks-1"}
    ) as node:
        assert node.code() == 0, node.log
    assert (quick.folder / f"dest{index}/file").read_bytes() == b"content"
    assert target.read_text() == "aks-1\n"


def test_each_node_writes_the_name_of_its_machine(quick: Lab) -> None:
    with ExitStack() as stack:
        nodes = []
        for index in range(3):
            words = f"--node-file={quick.folder / f'machine{index}'}"
            env = {"NODE_NAME": f"aks-{index}"}
            nodes.append(stack.enter_context(quick.node(index, words, env=env)))
        assert [node.code() for node in nodes] == [0, 0, 0]
    assert [(quick.folder / f"machine{index}").read_text() for index in range(3)] == [
        "aks-0\n",
        "aks-1\n",
        "aks-2\n",
    ]


def test_the_command_runs_once_where_that_is_asked(quick: Lab) -> None:
    script = (
        "echo agent $OMPI_MCA_plm_rsh_agent port $AZCP_SSH_PORT; cat $OMPI_MCA_orte_default_hostfile; exit 4"
    )
    with quick.nodes("--command-on=launcher", "--", "sh", "-c", script) as nodes:
        assert [node.code() for node in nodes] == [4, 4, 4]
        assert nodes[0].says(f"agent {quick.folder}/bin/azcp-ssh port {quick.port}\n127.0.0.2 slots=1\n")
        assert nodes[0].log.count("agent") == 1
