"""Few open files allowed: a run stays within them, however many files it writes at a time."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

import pytest

from tests.lab.dataset import plain_data_set
from tests.lab.expectations import expect_distributed
from tests.lab.fault_account import FaultAccount
from tests.lab.mpi import distribute
from tests.lab.stored_blobs import stored

FILES: Final = 3000
OPEN_FILES: Final = 128
SIZES: Final = random.Random(5)
# Some small ones, written in one go, and some in several parts, which stay open between them.
DATA: Final = plain_data_set(*[SIZES.choice([0, 700, 9000, 300_000]) for _ in range(FILES)])


@pytest.mark.parametrize("ranks", [1, 2])
def test_thousands_of_files_are_written_with_few_of_them_open(dest: Path, ranks: int) -> None:
    limit = ["prlimit", f"--nofile={OPEN_FILES}:{OPEN_FILES}"]
    options = ("--bcast-chunk=256KiB", "--block-size=64KiB", "--concurrency=16")
    with FaultAccount(stored(DATA)) as account:
        outcome = distribute(account.url(), dest, *options, ranks=ranks, nodes=ranks, under=limit)
    expect_distributed(outcome, dest, DATA, nodes=ranks)
