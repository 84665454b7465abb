"""Nodes with links of their own, one of which is cut, and a node that dies: the run ends and says which."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from azcp_runtime.contract import ExitCode
from namespaces import FABRIC, FRONT

from tests.lab import faults
from tests.lab.dataset import plain_data_set
from tests.lab.disks import is_root
from tests.lab.expectations import FAILS_WITHIN_S, expect_failure
from tests.lab.fault_account import FaultAccount
from tests.lab.faults import FOREVER, Fault
from tests.lab.mpi import Job
from tests.lab.namespace_nodes import Nodes, account_of, namespace_nodes
from tests.lab.stored_blobs import stored
from tests.lab.trees import assert_same, wrong_files
from tests.lab.waiting import wait_until

MIB: Final = 1 << 20
NODES: Final = 3
DEADLINE_S: Final = 60.0
DATA: Final = plain_data_set(*[4 * MIB] * 12)
OPTIONS: Final = ("--stall-timeout=8", "--retry-time=5", "--concurrency=2")
PACE: Final = Fault(faults.slow(MIB), times=FOREVER)

pytestmark = pytest.mark.skipif(not is_root(), reason="needs root for network namespaces")


def wait_for_the_pass(job: Job, account: FaultAccount) -> None:
    """Return when bytes have moved."""
    wait_until(lambda: job.ended() or account.served_bytes() > MIB, DEADLINE_S, "the pass has begun")


def expect_nothing_wrong(nodes: Nodes) -> None:
    """What has a name has its bytes."""
    for node in nodes.names:
        assert wrong_files(nodes.tree(node), DATA.manifest) == []


def test_nodes_with_two_links_get_the_data(tmp_path: Path) -> None:
    with namespace_nodes(tmp_path, NODES) as nodes, account_of(nodes, stored(DATA)) as account:
        with nodes.started(account.url(), *OPTIONS) as job:
            job.wait().expect(ExitCode.DONE)
        for node in nodes.names:
            assert_same(nodes.tree(node), DATA.manifest)


@pytest.mark.parametrize("index", [0, 2])
def test_a_fabric_link_that_is_cut_ends_the_run_and_names_its_node(tmp_path: Path, index: int) -> None:
    with namespace_nodes(tmp_path, NODES) as nodes, account_of(nodes, stored(DATA), [PACE]) as account:
        with nodes.started(account.url(), *OPTIONS) as job:
            wait_for_the_pass(job, account)
            nodes.cut(nodes.names[index], FABRIC)
            outcome = job.wait(FAILS_WITHIN_S)
            job.wait_until_gone()
        expect_nothing_wrong(nodes)
    # mpirun's own keepalive finds it first, and ends with a code of its own.
    assert outcome.code != ExitCode.DONE
    assert nodes.names[index] in outcome.stderr
    assert "Traceback" not in outcome.stderr


def test_an_account_link_that_is_cut_ends_the_run_and_names_node_and_blob(tmp_path: Path) -> None:
    with namespace_nodes(tmp_path, NODES) as nodes, account_of(nodes, stored(DATA), [PACE]) as account:
        with nodes.started(account.url(), *OPTIONS) as job:
            wait_for_the_pass(job, account)
            nodes.cut(nodes.names[1], FRONT)
            outcome = job.wait(FAILS_WITHIN_S)
            job.wait_until_gone()
        expect_nothing_wrong(nodes)
    expect_failure(outcome, {ExitCode.BROADCAST, ExitCode.DOWNLOAD}, f"rank 1 on {nodes.names[1]}", "b")


def test_a_node_that_dies_ends_the_job_on_all_others(tmp_path: Path) -> None:
    with namespace_nodes(tmp_path, NODES) as nodes, account_of(nodes, stored(DATA), [PACE]) as account:
        with nodes.started(account.url(), *OPTIONS) as job:
            wait_for_the_pass(job, account)
            nodes.kill(nodes.names[1])
            outcome = job.wait(FAILS_WITHIN_S)
            job.wait_until_gone()
        expect_nothing_wrong(nodes)
    assert outcome.code != ExitCode.DONE
    assert "Traceback" not in outcome.stderr
