"""Nodes with two links to the fabric: two rails use both, each its own, and the data is right."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
from azcp_runtime.contract import ExitCode

from tests.lab.dataset import plain_data_set
from tests.lab.disks import is_root
from tests.lab.rail_nodes import OB1, UCX, rail_nodes
from tests.lab.trees import assert_same, final_files

MIB: Final = 1 << 20
RAILS: Final = 2
LINKS: Final = "fabric,fabric2"
DATA: Final = plain_data_set(*[4 * MIB] * 8, 0, 100)

pytestmark = pytest.mark.skipif(not is_root(), reason="needs root for network namespaces")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    DATA.write_to(folder)
    return folder


@pytest.mark.parametrize("transport", [OB1, UCX], ids=["ob1", "ucx"])
def test_each_rail_sends_its_half_over_its_own_link(
    tmp_path: Path, source: Path, transport: Mapping[str, str]
) -> None:
    with rail_nodes(tmp_path, 2, RAILS) as nodes:
        ended = nodes.distribute(source, "--rails", "2", "--rail-devices", LINKS, transport=transport)
        assert ended.code == ExitCode.DONE, ended.stderr
        for node in nodes.cluster.nodes:
            assert_same(nodes.tree(node), DATA.manifest)
            quarter = DATA.total_bytes / 4
            assert all(0.9 * quarter < sent < 1.3 * quarter for sent in nodes.sent(node))
    told = [line.split() for line in ended.stderr.splitlines() if line.startswith("[rails]")]
    assert told[0][1:4] == ["2", "rails", "on"]
    assert [words[1:3] for words in told[2:]] == [["0", "fabric"], ["1", "fabric2"]]


def test_each_rail_keeps_to_its_cpus(tmp_path: Path, source: Path) -> None:
    first, last = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
    cpus = f"{first}/{last}"
    with rail_nodes(tmp_path, 2, RAILS) as nodes:
        ended = nodes.distribute(source, "--rails=auto", f"--rail-devices={LINKS}", f"--rail-cpus={cpus}")
        assert ended.code == ExitCode.DONE, ended.stderr
    told = [line.split() for line in ended.stderr.splitlines() if line.startswith("[rails]")]
    assert [words[-2] for words in told[2:]] == [str(first), str(last)]


def test_a_link_that_is_missing_is_told_of_all_nodes_before_a_byte_moves(
    tmp_path: Path, source: Path
) -> None:
    with rail_nodes(tmp_path, 2, RAILS) as nodes:
        ended = nodes.distribute(source, "--rails", "2", "--rail-devices", "fabric,fabric7")
        assert ended.code == ExitCode.PREFLIGHT
        assert [final_files(nodes.tree(node)) for node in nodes.cluster.nodes] == [[], []]
        assert f"{', '.join(nodes.cluster.nodes)}: no fabric7" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_another_number_of_ranks_than_rails_is_refused(tmp_path: Path, source: Path) -> None:
    with rail_nodes(tmp_path, 2, RAILS) as nodes:
        ended = nodes.distribute(source, "--rails", "3", "--rail-devices", "fabric,fabric2,fabric3")
    assert ended.code == ExitCode.USAGE
    assert "--rails 3, but each node has 2 ranks" in ended.stderr
