"""azcp-launch in a Slurm step: its nodes, its keys, and the user's command told its place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from azcp_runtime.contract import UsageError
from azcp_runtime.launch.discovery.find import discover
from azcp_runtime.launch.discovery.slurm import Slurm
from azcp_runtime.launch.discovery.surveyed import Surveyed
from azcp_runtime.launch.options import parse_launch
from azcp_runtime.launch.rank import Ranked, ranked_environment, read_ranked
from azcp_runtime.ssh.keys import parse_private
from azcp_runtime.ssh.seed import SEED_BYTES, forget, keys_from_seed, read_seed

STEP = {
    "SLURM_STEP_NODELIST": "gpu-[08-10],login",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_NODEID": "2",
    "SLURM_PROCID": "2",
    "SLURM_JOB_ID": "7",
    "SLURM_STEP_ID": "0",
    "SLURM_JOB_NUM_NODES": "4",
}
HOSTS = ["gpu-08", "gpu-09", "gpu-10", "login"]


def test_a_step_names_its_nodes_and_which_of_them_this_is() -> None:
    found = Slurm(STEP).find()
    assert found is not None
    assert (list(found.hosts), found.own, found.way) == (HOSTS, 2, "Slurm's step 7.0")


def test_the_host_name_has_no_say_in_it() -> None:
    launch = parse_launch(["/s", "/d", "--every-node", "--nodes", "4"], {})
    assert discover(launch, Surveyed(STEP, "gpu-08", "")).own == 2


def test_elsewhere_there_is_nothing_to_find() -> None:
    assert Slurm({}).find() is None
    assert Slurm({"SLURM_JOB_NUM_NODES": "1"}).find() is None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"SLURM_STEP_NUM_TASKS": "8"}, "has 8 tasks on 4 nodes"),
        ({"SLURM_NODEID": "4"}, "SLURM_NODEID is '4'"),
        ({"SLURM_NODEID": ""}, "SLURM_NODEID is ''"),
        ({"SLURM_STEP_NODELIST": ""}, "no step of the Slurm job, which has 4 nodes"),
    ],
)
def test_what_would_not_be_once_on_each_node_is_refused(change: dict[str, str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        Slurm({**STEP, **change}).find()


def test_another_number_of_nodes_than_was_promised_is_refused() -> None:
    launch = parse_launch(["/s", "/d", "--every-node", "--nodes", "5"], {})
    with pytest.raises(UsageError, match=r"--nodes says 5, Slurm's step 7\.0 has 4"):
        discover(launch, Surveyed(STEP, "x", ""))


def test_a_seed_is_for_nodes_that_run_the_same() -> None:
    with pytest.raises(UsageError, match="--key-seed is for nodes that each run this command"):
        parse_launch(["/s", "/d", "--key-seed", "-"], {})


def test_the_same_bytes_make_the_same_pair_and_others_another() -> None:
    one, same, other = (keys_from_seed(bytes([number]) * SEED_BYTES) for number in (1, 1, 2))
    assert one.authorized == same.authorized
    assert parse_private(one).export_public_key() == parse_private(same).export_public_key()
    assert one.authorized.split()[1] != other.authorized.split()[1]
    assert parse_private(one).export_public_key().split()[:2] == one.authorized.split()[:2]


@pytest.mark.parametrize(("length", "told"), [(31, "and 31 came"), (33, "and more came"), (0, "and 0 came")])
def test_a_seed_of_another_length_is_refused(tmp_path: Path, length: int, told: str) -> None:
    (tmp_path / "seed").write_bytes(bytes(length))
    with pytest.raises(UsageError, match=told):
        read_seed(str(tmp_path / "seed"))


def test_a_seed_can_come_piece_by_piece_on_standard_input() -> None:
    code = "from azcp_runtime.ssh.seed import read_seed; print(read_seed('-').hex())"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as child:
        assert child.stdin is not None
        child.stdin.write(b"a" * 10)
        child.stdin.write(b"b" * 22)
        out, _ = child.communicate(timeout=30)
    assert bytes.fromhex(out.decode()) == b"a" * 10 + b"b" * 22


def test_a_seed_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_seed(str(tmp_path / "none"))


def test_what_was_left_is_removed_even_where_nothing_was(tmp_path: Path) -> None:
    state = tmp_path / "state"
    (state / "keys").mkdir(parents=True)
    forget(state)
    forget(state)
    assert not state.exists()


def test_a_command_is_told_its_place_over_its_own_variables() -> None:
    env = ranked_environment(
        {**STEP, "A": "host", "PATH": "/x"}, Ranked("25007", {"A": "own", "RANK": "9"}, ["x"])
    )
    assert {name: env[name] for name in ("A", "PATH", "RANK", "NODE_RANK", "NNODES")} == {
        "A": "own",
        "PATH": "/x",
        "RANK": "2",
        "NODE_RANK": "2",
        "NNODES": "4",
    }
    assert (env["MASTER_ADDR"], env["MASTER_PORT"], env["PET_MASTER_PORT"]) == ("gpu-08", "25007", "25007")
    assert "WORLD_SIZE" not in env


def test_outside_of_a_step_it_is_refused() -> None:
    with pytest.raises(UsageError, match="no task of a Slurm step"):
        ranked_environment(dict(os.environ), Ranked("1", {}, ["x"]))


def test_variables_and_words_are_taken_as_they_are() -> None:
    ranked = read_ranked(["1", "A=x=y\n", "B=", "--", "run", "--", "C=D"])
    assert ranked == Ranked("1", {"A": "x=y\n", "B": ""}, ["run", "--", "C=D"])


@pytest.mark.parametrize(
    "words", [[], ["1"], ["1", "--"], ["x", "--", "y"], ["1", "A", "--", "y"], ["1", "=v", "--", "y"]]
)
def test_another_command_line_is_refused(words: list[str]) -> None:
    with pytest.raises(UsageError, match="started otherwise"):
        read_ranked(words)
