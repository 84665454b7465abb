"""Fixtures of the tests that need Slurm."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.requirements import missing
from tests.lab.slurm import Cluster, lacking, slurm_cluster
from tests.lab.slurm_tree import assembled_tree


@pytest.fixture(scope="session")
def slurm() -> None:
    """Whoever starts a cluster of his own asks for this, and is skipped where none can be started."""
    if reason := lacking():
        missing("slurm", reason)


@pytest.fixture(scope="module")
def cluster(slurm: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Four idle nodes, the same for all tests of a module; who takes a node down brings it back."""
    assert slurm is None
    with slurm_cluster(tmp_path_factory.mktemp("slurm") / "lab") as running:
        yield running


@pytest.fixture(scope="session")
def tree(slurm: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What is at /opt/azcp on nodes without a container, from this checkout."""
    assert slurm is None
    folder = tmp_path_factory.mktemp("tree")
    yield assembled_tree(folder)
    shutil.rmtree(folder)
