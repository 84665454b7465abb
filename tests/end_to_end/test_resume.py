"""A killed run goes on inside its large files: what is served again, from whom, and what is never trusted."""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from azcp_runtime.contract import ENV_SAS, STATE_DIR, ExitCode
from azcp_runtime.contract.units import format_size
from azcp_runtime.disk.records import read_records
from azcp_runtime.disk.tree import partial_path
from azcp_runtime.plan.ranges import Range, merged, total

from tests.lab import faults
from tests.lab.content import Content
from tests.lab.counting_proxy import CountingProxy
from tests.lab.dataset import Blob, DataSet, plain_data_set
from tests.lab.expectations import expect_failure, expect_trees, summary_of
from tests.lab.fault_account import FaultAccount
from tests.lab.faults import FOREVER, Fault
from tests.lab.mpi import Job, distribute, started
from tests.lab.processes import kill
from tests.lab.stored_blobs import stored
from tests.lab.trees import final_files, wrong_files
from tests.lab.upload import account_key, blob_url, upload
from tests.lab.waiting import wait_until

if TYPE_CHECKING:
    from azcp_kit.azurite import Azurite

MIB: Final = 1 << 20
DATA: Final = plain_data_set(48 * MIB + 5, 10, 0, 300_000)
LARGE: Final = "b0"
DEADLINE_S: Final = 60.0
PACE: Final = Fault(faults.slow(8 * MIB), times=FOREVER)
OPTIONS: Final = ("--bcast-chunk=1MiB", "--concurrency=2", "--no-progress")
ROUNDS: Final = int(os.environ.get("AZCP_KILL_ROUNDS", "2"))
MOST_OWN_SLOTS: Final = 8
RECORDED_WITHIN_S: Final = 2.0
# When it ends stands in a policy of the account's, which nobody here can read.
SAS: Final = "sv=2024-11-04&sr=c&si=readers&sig="


@pytest.fixture
def account() -> Iterator[FaultAccount]:
    """One that is slow enough for a kill to land anywhere."""
    with FaultAccount(stored(DATA), [PACE]) as made:
        yield made


def recorded(dest: Path) -> list[Range]:
    """The bytes of the large file that some node has on record; it is the only one with ranges."""
    journals = dest.glob(f"node*/{STATE_DIR}/journal*")
    records = (record for path in journals for record in read_records(os.fsencode(path)))
    return merged((each.first, each.first + each.length) for each in records if each.length)


def killed(
    account: FaultAccount, dest: Path, end: Callable[[Job], None], *, share: float = 0.6, nodes: int = 2
) -> int:
    """Start a run, end it when so much is on record; the bytes that were served."""
    with started(account.url(), dest, *OPTIONS, ranks=nodes, nodes=nodes) as job:
        wait_until(
            lambda: job.ended() or total(recorded(dest)) > share * DATA.total_bytes, DEADLINE_S, "on record"
        )
        end(job)
        job.wait(DEADLINE_S)
        job.wait_until_gone(DEADLINE_S)
    for node in range(nodes):
        assert wrong_files(dest / f"node{node}", DATA.manifest) == []
    assert LARGE not in final_files(dest / "node0")
    return account.served_bytes()


def kill_all(job: Job) -> None:
    for pid in job.ranks().values():
        kill(pid)


def served_since(account: FaultAccount, reads: int) -> int:
    """Bytes of the large file in all reads but the first; an early one may still be on its way to nobody."""
    return sum(read.sent_bytes for read in account.reads(LARGE)[reads:] if read.status in {200, 206})


def test_a_run_with_another_chunk_goes_on_where_the_killed_one_was(account: FaultAccount, dest: Path) -> None:
    killed(account, dest, kill_all)
    there, before = recorded(dest), len(account.reads(LARGE))
    options = ("--bcast-chunk=384KiB", "--bcast-pipeline=2", "--concurrency=2", "--no-progress")
    distribute(account.url(), dest, *options, ranks=2, nodes=2).expect(ExitCode.DONE)
    assert served_since(account, before) == DATA.blobs[0].content.size - total(there)
    expect_trees(dest, DATA, 2)


@pytest.mark.parametrize(("ranks", "nodes"), [(1, 1), (3, 3), (4, 2)])
def test_another_number_of_ranks_goes_on_and_only_what_nobody_has_is_served(
    account: FaultAccount, dest: Path, ranks: int, nodes: int
) -> None:
    killed(account, dest, kill_all)
    if nodes == 1:  # node 1 is gone with its disk
        shutil.rmtree(dest / "node1")
    there, before = recorded(dest), len(account.reads(LARGE))
    outcome = distribute(account.url(), dest, *OPTIONS, ranks=ranks, nodes=nodes)
    summary_of(outcome)
    assert served_since(account, before) == DATA.blobs[0].content.size - total(there)
    size = format_size(DATA.blobs[0].content.size)
    assert f"resumed inside 1 unfinished file: of {size} there are " in outcome.stderr
    expect_trees(dest, DATA, nodes)


def test_a_file_killed_at_nine_tenths_costs_what_is_missing_and_the_chunks_in_flight(
    azurite: Azurite, container: str, dest: Path
) -> None:
    size, rate = 192 * MIB, 32 * MIB
    data_set = DataSet((Blob("weights", Content(size, 3)),))
    upload(data_set, azurite, container, "")
    options = ("--bcast-chunk=1MiB", "--no-progress")
    with CountingProxy(azurite.endpoint) as proxy:
        url = blob_url(proxy.endpoint, container)
        with started(
            url,
            dest,
            *options,
            f"--max-bandwidth={rate // MIB}MiB/s",
            ranks=4,
            nodes=4,
            env=account_key(azurite),
        ) as job:
            wait_until(lambda: job.ended() or proxy.blob_bytes() > 0.9 * size, DEADLINE_S, "nine tenths")
            kill_all(job)
            job.wait(DEADLINE_S)
            job.wait_until_gone(DEADLINE_S)
        first = proxy.blob_bytes()
        assert first > 0.9 * size, job.output()
        distribute(url, dest, *options, ranks=2, nodes=2, env=account_key(azurite)).expect(ExitCode.DONE)
        second = proxy.blob_bytes() - first
    in_flight = 4 * MOST_OWN_SLOTS * MIB + RECORDED_WITHIN_S * rate
    assert second <= max(0, size - first) + in_flight
    expect_trees(dest, data_set, 2)


def wait_for_bytes(job: Job, account: FaultAccount, share: float) -> None:
    """Return once so much more of the data set has been served."""
    enough = account.served_bytes() + share * DATA.total_bytes
    wait_until(lambda: job.ended() or account.served_bytes() > enough, DEADLINE_S, "bytes served")


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_killed_again_and_again_with_other_ranks_each_time_it_ends_byte_for_byte(
    dest: Path, seed: int
) -> None:
    dice = random.Random(seed)
    with FaultAccount(stored(DATA), [PACE]) as account:
        for _ in range(3):
            nodes = dice.randint(1, 3)
            ranks = nodes * dice.randint(1, 2)
            with started(account.url(), dest, *OPTIONS, ranks=ranks, nodes=nodes) as job:
                wait_for_bytes(job, account, dice.random() / 2)
                job.kill_rank(dice.randrange(ranks))
                job.wait(DEADLINE_S)
                job.wait_until_gone(DEADLINE_S)
            for node in range(nodes):
                assert wrong_files(dest / f"node{node}", DATA.manifest) == []
        distribute(account.url(), dest, *OPTIONS, ranks=3, nodes=3).expect(ExitCode.DONE)
        expect_trees(dest, DATA, 3)
        before = account.served_bytes()
        assert summary_of(distribute(account.url(), dest, *OPTIONS, ranks=3, nodes=3)).skipped == 4
        assert account.served_bytes() == before


def test_a_node_whose_disk_was_wiped_gets_from_its_peers_what_they_have(
    account: FaultAccount, dest: Path
) -> None:
    killed(account, dest, kill_all, nodes=3)
    shutil.rmtree(dest / "node1")
    there, before = recorded(dest), len(account.reads(LARGE))
    summary_of(distribute(account.url(), dest, *OPTIONS, ranks=3, nodes=3))
    assert served_since(account, before) == DATA.blobs[0].content.size - total(there)
    expect_trees(dest, DATA, 3)


def test_a_blob_that_was_changed_in_between_begins_anew(account: FaultAccount, dest: Path) -> None:
    killed(account, dest, kill_all)
    content = Content(48 * MIB + 5, 99)
    account.blobs[LARGE] = replace(
        account.blobs[LARGE], content=content, content_md5=None, etag="0x8DCCCCCCCCCCCCC"
    )
    before = len(account.reads(LARGE))
    distribute(account.url(), dest, *OPTIONS, ranks=2, nodes=2).expect(ExitCode.DONE)
    assert served_since(account, before) == content.size
    changed = replace(DATA, blobs=(Blob(LARGE, content), *DATA.blobs[1:]))
    expect_trees(dest, changed, 2)


@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1],
    ids=["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1"],
)
def test_a_signal_ends_a_run_with_75_and_the_same_command_goes_on(
    account: FaultAccount, dest: Path, number: signal.Signals
) -> None:
    # The tests themselves may run under nohup.
    with started(account.url(), dest / "node0", *OPTIONS, under=["env", "--default-signal=HUP"]) as job:
        wait_until(
            lambda: job.ended() or account.served_bytes() > 0.5 * DATA.total_bytes, DEADLINE_S, "half of it"
        )
        kill(job.launcher.pid, number)
        outcome = job.wait(DEADLINE_S)
    expect_failure(outcome, ExitCode.RESUMABLE, number.name, "resumable", "the same command goes on")
    there, before = recorded(dest), len(account.reads(LARGE))
    in_flight = 2 * MOST_OWN_SLOTS * MIB
    assert total(there) >= served_since(account, 0) - in_flight
    summary_of(distribute(account.url(), dest / "node0", *OPTIONS))
    assert served_since(account, before) == DATA.blobs[0].content.size - total(there)
    expect_trees(dest, DATA, 1)


def test_a_run_under_nohup_outlives_its_terminal(account: FaultAccount, dest: Path) -> None:
    with started(account.url(), dest / "node0", *OPTIONS, under=["env", "--ignore-signal=HUP"]) as job:
        wait_until(lambda: job.ended() or account.served_bytes() > 0, DEADLINE_S, "it reads")
        kill(job.launcher.pid, signal.SIGHUP)
        job.wait(DEADLINE_S).expect(ExitCode.DONE)
    expect_trees(dest, DATA, 1)


def test_a_sas_that_was_refused_half_way_is_followed_by_another(dest: Path) -> None:
    expired = Fault(
        faults.forbidden("AuthenticationFailed", "Signature not valid in the specified time frame"),
        lambda request: request.is_blob_read and request.query.get("sig") == "old",
        after=20,
        times=FOREVER,
    )
    with FaultAccount(stored(DATA), [expired, PACE]) as account:
        go_on_with_another_sas(account, dest)
    expect_trees(dest, DATA, 2)


def go_on_with_another_sas(account: FaultAccount, dest: Path) -> None:
    """One run whose SAS ends, and a second one."""
    first = distribute(account.url(), dest, *OPTIONS, ranks=2, nodes=2, env={ENV_SAS: f"{SAS}old"})
    first.expect(ExitCode.RESUMABLE)
    there, before = recorded(dest), len(account.reads(LARGE))
    assert total(there) > 4 * MIB
    again = distribute(account.url(), dest, *OPTIONS, ranks=2, nodes=2, env={ENV_SAS: f"{SAS}new"})
    summary_of(again)
    assert served_since(account, before) == DATA.blobs[0].content.size - total(there)


def test_compare_none_reads_all_again(account: FaultAccount, dest: Path) -> None:
    killed(account, dest, kill_all)
    before = len(account.reads(LARGE))
    outcome = distribute(account.url(), dest, *OPTIONS, "--compare=none", ranks=2, nodes=2)
    assert summary_of(outcome).azure == len(DATA.blobs)
    assert served_since(account, before) == DATA.blobs[0].content.size
    assert "resumed" not in outcome.stderr
    expect_trees(dest, DATA, 2)


def test_parts_of_a_file_are_kept_under_compare_size_too(account: FaultAccount, dest: Path) -> None:
    killed(account, dest, kill_all)
    there, before = recorded(dest), len(account.reads(LARGE))
    summary_of(distribute(account.url(), dest, *OPTIONS, "--compare=size", ranks=2, nodes=2))
    assert served_since(account, before) == DATA.blobs[0].content.size - total(there)
    expect_trees(dest, DATA, 2)


def test_a_file_that_only_lacks_its_name_gets_it_without_a_byte(account: FaultAccount, dest: Path) -> None:
    distribute(account.url(), dest, *OPTIONS, ranks=2, nodes=2).expect(ExitCode.DONE)
    for node in range(2):
        target = os.fsencode(dest / f"node{node}" / LARGE)
        os.rename(target, partial_path(target))
    before = account.served_bytes()
    summary = summary_of(distribute(account.url(), dest, *OPTIONS, ranks=2, nodes=2))
    assert (summary.to_transfer, summary.skipped) == (0, len(DATA.blobs))
    assert account.served_bytes() == before
    expect_trees(dest, DATA, 2)


@pytest.mark.parametrize("compare", ["etag", "size"])
def test_a_full_size_file_without_a_record_is_never_sent_to_others(
    account: FaultAccount, dest: Path, compare: str
) -> None:
    (dest / "node0").mkdir()
    (dest / "node0" / LARGE).write_bytes(bytes(DATA.blobs[0].content.size))
    summary = summary_of(distribute(account.url(), dest, *OPTIONS, f"--compare={compare}", ranks=2, nodes=2))
    assert summary.peer == 0
    assert served_since(account, 0) == DATA.blobs[0].content.size
    assert wrong_files(dest / "node1", DATA.manifest) == []
    # size means size: what is there stays as it is, on that node alone.
    assert len(wrong_files(dest / "node0", DATA.manifest)) == (1 if compare == "size" else 0)
