"""The lines that the toolkit writes are read by the real sbatch as they were meant."""

from __future__ import annotations

import pytest
from azcp_kit.quoting.directive import sbatch_directive

from tests.lab.slurm import Cluster


@pytest.mark.parametrize(
    "value",
    [
        "plain",
        "a b",
        "it's",
        'say "so"',
        "$HOME `id`",
        "a,b:c",
        "#no comment",
        "back\\slash",
        "%j é",
        "'",
        '"',
        "\\",
    ],
)
def test_a_value_is_what_slurm_has(cluster: Cluster, value: str) -> None:
    number = cluster.sbatch(f"#!/bin/sh\n{sbatch_directive('comment', value)}\ntrue\n", "--hold")
    lines = cluster.said("scontrol", "show", "job", str(number)).splitlines()
    cluster.said("scancel", str(number))
    assert f"Comment={value}" in [line.strip() for line in lines]
