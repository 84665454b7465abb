"""The door to MPI at several world sizes, on the real library."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from azcp_runtime.contract import ENV_SIMULATE_NODES, UsageError
from azcp_runtime.mpi.launch import check_world_size, is_first, launched_by_mpi
from azcp_runtime.mpi.world import tree_around

from tests.lab.mpi import MPIRUN

PROGRAM = Path(__file__).with_name("ranks_program.py")
GIB = 1 << 30


def run(what: str, ranks: int, nodes: int, deadline_s: float = 120) -> None:
    """Run ranks_program.py; every rank must say that it is right."""
    env = os.environ | {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        ENV_SIMULATE_NODES: str(nodes),
    }
    command = [str(MPIRUN), "-n", str(ranks), "--oversubscribe", sys.executable, str(PROGRAM), what]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=deadline_s, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.count("is right") == ranks


@pytest.mark.parametrize(("ranks", "nodes"), [(1, 1), (2, 2), (4, 4), (4, 2), (4, 1)])
def test_collectives_are_right_on_every_rank(ranks: int, nodes: int) -> None:
    run("collectives", ranks, nodes)


@pytest.mark.parametrize(("ranks", "nodes"), [(2, 2), (4, 4), (4, 2)])
def test_a_slow_root_holds_back_no_other_lane(ranks: int, nodes: int) -> None:
    run("slow-lane", ranks, nodes)


@pytest.mark.parametrize("size", [GIB + 1, 2 * GIB, 2 * GIB + 1, 4 * GIB])
def test_a_broadcast_is_whole_at_the_sizes_where_counts_overflow(size: int) -> None:
    run(str(size), 2, 2)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 8, 9, 1024])
def test_every_rank_has_one_parent_that_counts_it_as_its_child(size: int) -> None:
    tree = [tree_around(rank, size) for rank in range(size)]
    pairs = [(rank, child) for rank, (_, children) in enumerate(tree) for child in children]
    assert sorted(child for _, child in pairs) == list(range(1, size))
    assert all(tree[child][0] == rank for rank, child in pairs)
    assert max(len(children) for _, children in tree) <= size.bit_length()


def test_a_process_without_a_launcher_is_no_rank() -> None:
    assert not launched_by_mpi({"SLURM_NTASKS": "4"})
    assert launched_by_mpi({"PMIX_RANK": "0"})


@pytest.mark.parametrize(
    "env",
    [
        {"OMPI_COMM_WORLD_SIZE": "4"},
        {"SLURM_NTASKS": "4"},
        {"SLURM_STEP_NUM_TASKS": "4", "SLURM_NTASKS": "1"},
        {"PMI_SIZE": "4"},
    ],
)
def test_a_world_smaller_than_the_launcher_promised_is_refused(env: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="the MPI world has 1 ranks, .* says 4"):
        check_world_size(1, None, env, alone=False)


def test_mpirun_may_start_fewer_ranks_than_the_allocation_has_tasks() -> None:
    check_world_size(2, None, {"OMPI_COMM_WORLD_SIZE": "2", "SLURM_NTASKS": "16"}, alone=False)


def test_the_wish_for_one_rank_overrules_the_launcher_but_not_the_user() -> None:
    check_world_size(1, None, {"SLURM_NTASKS": "4"}, alone=True)
    with pytest.raises(UsageError, match="--expect-ranks says 2"):
        check_world_size(1, 2, {}, alone=True)


def test_only_the_first_process_of_a_launch_speaks_for_all() -> None:
    assert is_first({})
    assert is_first({"OMPI_COMM_WORLD_RANK": "0", "SLURM_PROCID": "3"})
    assert not is_first({"SLURM_PROCID": "3"})
