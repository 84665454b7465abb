"""Disks with sectors of 512 and of 4096 bytes: right to the last byte, and full with one clear line."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
from azcp_runtime.contract import ExitCode

from tests.lab.answers import Answer
from tests.lab.dataset import plain_data_set
from tests.lab.disks import is_root, small_ext4
from tests.lab.expectations import expect_distributed, expect_failure
from tests.lab.fault_account import FaultAccount
from tests.lab.faults import Fault
from tests.lab.mpi import distribute
from tests.lab.stored_blobs import stored
from tests.lab.trees import wrong_files

MIB: Final = 1 << 20
TAILS: Final = (0, 1, 511, 512, 513, 4095, 4096, 4097, MIB + 511, 3 * MIB + 512, 9 * MIB + 4097)
DATA: Final = plain_data_set(*TAILS)

pytestmark = [
    pytest.mark.skipif(not is_root(), reason="needs root for loop devices"),
    pytest.mark.parametrize("sector_bytes", [512, 4096]),
]


@pytest.mark.parametrize("options", [[], ["--no-bcast-direct"]], ids=["direct", "buffered"])
def test_every_tail_is_right_on_disks_with_these_sectors(
    tmp_path: Path, sector_bytes: int, options: list[str]
) -> None:
    with small_ext4(tmp_path, 128 * MIB, sector_bytes) as disk, FaultAccount(stored(DATA)) as account:
        outcome = distribute(account.url(), disk, "--bcast-chunk=1MiB", *options, ranks=2, nodes=2)
        expect_distributed(outcome, disk, DATA, nodes=2)
    assert "O_DIRECT" not in outcome.stderr


def test_a_disk_with_these_sectors_that_is_too_small_is_told_before_a_byte_is_read(
    tmp_path: Path, sector_bytes: int
) -> None:
    data_set = plain_data_set(*[5 * MIB + 1] * 8)
    with small_ext4(tmp_path, 24 * MIB, sector_bytes) as disk, FaultAccount(stored(data_set)) as account:
        outcome = distribute(account.url(), disk, ranks=2, nodes=2)
        assert account.reads() == []
    expect_failure(outcome, ExitCode.PREFLIGHT, "free", str(disk))


def test_a_disk_with_these_sectors_that_others_fill_during_the_run_ends_it_by_the_files_name(
    tmp_path: Path, sector_bytes: int
) -> None:
    data_set = plain_data_set(*[2 * MIB + 1] * 8)
    with small_ext4(tmp_path, 32 * MIB, sector_bytes) as disk, FaultAccount(stored(data_set)) as account:
        account.script(fill_when_first_read(disk))
        outcome = distribute(account.url(), disk, ranks=2)
        expect_failure(outcome, ExitCode.DOWNLOAD, "No space left", str(disk))
        (disk / "somebody-elses").unlink()
        assert wrong_files(disk, data_set.manifest) == []


def fill_when_first_read(disk: Path) -> Fault:
    """Somebody else takes all that is free once the run has found that there is enough."""

    def fill(answer: Answer) -> Answer:
        with (disk / "somebody-elses").open("wb") as stream, suppress(OSError):
            while True:
                stream.write(bytes(MIB))
        return answer

    return Fault(fill)
