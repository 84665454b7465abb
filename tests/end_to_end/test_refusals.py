"""What is refused before a byte is read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from azcp_runtime.contract import ENV_ACCOUNT_KEY, ENV_SAS, ExitCode

from tests.lab import faults
from tests.lab.dataset import plain_data_set
from tests.lab.expectations import expect_failure
from tests.lab.fault_account import FaultAccount
from tests.lab.faults import FOREVER, Fault, listing
from tests.lab.mpi import distribute
from tests.lab.stored_blobs import StoredBlob, stored
from tests.lab.trees import final_files
from tests.lab.upload import blob_url, upload

if TYPE_CHECKING:
    from azcp_kit.azurite import Azurite

MIB: Final = 1 << 20
DATA: Final = StoredBlob(b"data")
SAS: Final = "sv=2024-11-04&se=2099-01-01T00:00:00Z&sr=c&sp=rl"
REFUSED_NAMES: Final = (
    "../outside",
    "a/../../b",
    "a/..",
    "nul\0byte",
    "long/" + "n" * 256,
    "\u00e9" * 128,
    ".azcp/journal",
)


def test_every_name_that_no_file_can_have_is_listed_before_a_byte_is_read(dest: Path) -> None:
    blobs = {f"p/{name}": DATA for name in (*REFUSED_NAMES, "fine")}
    with FaultAccount(blobs) as account:
        outcome = distribute(account.url("data/p/"), dest, ranks=2, nodes=2)
        assert account.reads() == []
    expect_failure(outcome, ExitCode.LIST)
    for told in ("../outside", "a/../../b", "a/..", "nul\\x00byte", "n" * 50, "\u00e9" * 50, ".azcp/journal"):
        assert told in outcome.stderr
    assert not dest.parent.joinpath("outside").exists()
    assert "fine" not in outcome.stderr
    assert not any(final_files(dest))


def test_an_absolute_name_is_refused(dest: Path) -> None:
    with FaultAccount({"/etc/passwd": DATA}) as account:
        outcome = distribute(account.url(), dest)
        assert account.reads() == []
    expect_failure(outcome, ExitCode.LIST)
    assert "/etc/passwd" in outcome.stderr


def test_every_clash_of_a_file_and_a_folder_names_both(dest: Path) -> None:
    names = ("p/a", "p/a/b", "p/c/d", "p/c/d/e/f", "p/fine/g")
    with FaultAccount(dict.fromkeys(names, DATA)) as account:
        outcome = distribute(account.url("data/p/"), dest, ranks=2, nodes=2)
        assert account.reads() == []
    expect_failure(outcome, ExitCode.LIST)
    for told in ("a/b", "c/d", "c/d/e/f"):
        assert told in outcome.stderr
    assert "fine/g" not in outcome.stderr


def test_two_names_that_become_one_file_are_both_named(dest: Path) -> None:
    with FaultAccount(dict.fromkeys(("x//y", "x/y"), DATA)) as account:
        outcome = distribute(account.url(), dest)
        assert account.reads() == []
    expect_failure(outcome, ExitCode.LIST)
    assert "x//y" in outcome.stderr
    assert "x/y" in outcome.stderr.replace("x//y", "")


def test_archived_blobs_are_named_before_a_byte_is_read(dest: Path) -> None:
    waking = StoredBlob(b"ice", tier="Archive", archive_status="rehydrate-pending-to-hot")
    blobs = {"hot": DATA, "cold": StoredBlob(b"ice", tier="Archive"), "waking": waking}
    with FaultAccount(blobs) as account:
        outcome = distribute(account.url(), dest, ranks=2, nodes=2)
        assert account.reads() == []
        expect_failure(outcome, {ExitCode.LIST, ExitCode.PREFLIGHT})
        assert "cold" in outcome.stderr
        assert "waking" in outcome.stderr
        distribute(account.url(), dest, "--skip-archived", ranks=2, nodes=2).expect(ExitCode.DONE)
    assert final_files(dest / "node1") == ["hot"]


def test_a_container_that_does_not_exist_ends_the_run_at_the_listing(dest: Path) -> None:
    answer = faults.error(404, "ContainerNotFound", "The specified container does not exist.")
    missing = Fault(answer, when=listing, times=FOREVER)
    with FaultAccount({}, [missing]) as account:
        outcome = distribute(account.url(), dest, ranks=2, nodes=2)
    expect_failure(outcome, ExitCode.LIST)
    assert "ContainerNotFound" in outcome.stderr


def test_an_account_that_is_not_here_was_not_deleted_meanwhile(dest: Path) -> None:
    missing = Fault(faults.error(404, "ResourceNotFound"), when=listing, times=FOREVER)
    with FaultAccount({}, [missing]) as account:
        unsigned = distribute(account.url(), dest)
        signed = distribute(account.url(), dest, env={ENV_SAS: "sp=rl&sig=x"})
    expect_failure(signed, ExitCode.LIST, "no such account or container here")
    assert "public" not in signed.stderr
    expect_failure(unsigned, ExitCode.LIST, "or it is not public and wants a SAS, a key or an identity")
    assert "deleted" not in signed.stderr + unsigned.stderr


@pytest.mark.parametrize("given", ["sas", "key", "nothing"])
def test_azurite_is_not_said_to_have_a_firewall(
    azurite: Azurite, container: str, dest: Path, given: str
) -> None:
    upload(plain_data_set(10), azurite, container, "")
    wrong = {"sas": {ENV_SAS: f"{SAS}&sig=eA%3D%3D"}, "key": {ENV_ACCOUNT_KEY: "eA=="}, "nothing": {}}
    outcome = distribute(blob_url(azurite.endpoint, container), dest, env=wrong[given])
    expect_failure(outcome, ExitCode.LIST)
    assert "the emulator refuses" in outcome.stderr
    assert "network" not in outcome.stderr
    assert "deleted" not in outcome.stderr


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        ("AuthorizationPermissionMismatch", "Storage Blob Data Reader"),
        ("AuthorizationFailure", "the emulator refuses"),
        ("AuthenticationFailed", "expired"),
    ],
)
def test_a_refused_listing_tells_the_code_and_the_remedy_and_is_not_tried_for_long(
    dest: Path, code: str, remedy: str
) -> None:
    with FaultAccount({}, [Fault(faults.forbidden(code), when=listing, times=FOREVER)]) as account:
        outcome = distribute(account.url(), dest, ranks=2, nodes=2)
        assert len(account.exchanges()) <= 2
    expect_failure(outcome, ExitCode.LIST)
    assert code in outcome.stderr
    assert remedy in outcome.stderr


def test_a_source_directory_that_does_not_exist_is_named(dest: Path, tmp_path: Path) -> None:
    outcome = distribute(str(tmp_path / "nowhere"), dest)
    expect_failure(outcome, ExitCode.LIST)
    assert "nowhere" in outcome.stderr


def test_an_account_that_nobody_answers_for_is_a_failed_listing(dest: Path) -> None:
    with FaultAccount({}) as account:
        url = account.url()
    outcome = distribute(url, dest, "--max-retries=1", "--retry-time=2")
    expect_failure(outcome, ExitCode.LIST)


def test_another_world_size_than_expected_ends_before_anything_is_asked(dest: Path) -> None:
    with FaultAccount(stored(plain_data_set(10))) as account:
        outcome = distribute(account.url(), dest, "--expect-ranks=4", ranks=2, nodes=2)
        assert account.exchanges() == []
    expect_failure(outcome, ExitCode.USAGE)
    assert list(dest.iterdir()) == []


def test_many_tasks_that_became_many_worlds_of_one_end_before_anything_is_asked(dest: Path) -> None:
    with FaultAccount(stored(plain_data_set(10))) as account:
        env = {"SLURM_NTASKS": "4", "SLURM_PROCID": "0", "SLURM_JOB_ID": "7"}
        outcome = distribute(account.url(), dest, env=env)
        assert account.exchanges() == []
    expect_failure(outcome, ExitCode.USAGE)
    assert "SLURM_NTASKS" in outcome.stderr


@pytest.mark.parametrize(
    "options",
    [
        ["--concurrency=0"],
        ["--concurrency=301"],
        ["--memory=lots"],
        ["--compare=filelist"],
        ["--shard-size=8MiB", "--file-shards=2"],
        ["--shard-size=3MiB", "--bcast-chunk=2MiB"],
        ["--max-bandwidth=fast"],
        ["--no-such-option"],
    ],
)
def test_a_wrong_option_is_named_with_code_two(dest: Path, options: list[str]) -> None:
    outcome = distribute("/nowhere", dest, *options)
    expect_failure(outcome, ExitCode.USAGE)
    assert options[0].partition("=")[0] in outcome.stderr


def test_all_contradictions_are_told_at_once(dest: Path) -> None:
    outcome = distribute("/nowhere", dest, "--shard-size=8MiB", "--file-shards=2", "--compare=filelist")
    expect_failure(outcome, ExitCode.USAGE)
    assert "--file-shards" in outcome.stderr
    assert "--filelist" in outcome.stderr


def test_a_wrong_option_under_mpirun_is_told_once(dest: Path) -> None:
    expect_failure(distribute("/nowhere", dest, "--concurrency=0", ranks=3, nodes=3), ExitCode.USAGE)
