"""Fixtures of the tests that need Slurm."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.requirements import missing
from tests.lab.slurm import Cluster, lacking, slurm_cluster


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
