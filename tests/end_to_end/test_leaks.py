"""Passes in one world of ranks, one after the other: nothing of a pass outlives it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from azcp_runtime.contract import ENV_SIMULATE_NODES

from tests.lab.dataset import plain_data_set
from tests.lab.fault_account import FaultAccount
from tests.lab.mpi import DEADLINE_S, MPIRUN
from tests.lab.stored_blobs import stored

PASSES: Final = Path(__file__).parents[2] / "bench" / "soak_passes.py"
MIB: Final = 1 << 20
SECONDS: Final = 4
RANKS: Final = 2
DATA: Final = plain_data_set(0, 10, 4097, MIB + 1, 3 * MIB + 5, *[20_000] * 20)


def test_no_thread_descriptor_or_communicator_outlives_a_pass(dest: Path) -> None:
    env = os.environ | {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        ENV_SIMULATE_NODES: str(RANKS),
    }
    with FaultAccount(stored(DATA)) as account:
        command = [str(MPIRUN), "-n", str(RANKS), "--oversubscribe", sys.executable, str(PASSES)]
        subprocess.run(
            [*command, account.url(), str(dest), str(SECONDS)],
            env=env,
            check=True,
            capture_output=True,
            timeout=DEADLINE_S,
        )
    for rank in range(RANKS):
        passes = json.loads((dest / f"{rank}.json").read_text())
        assert len(passes) > 2
        for what in ("communicators", "descriptors", "threads"):
            assert passes[-1][what] == passes[1][what], passes
