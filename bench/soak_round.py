"""One round of the soak: data, faults and disturbances from a seed, until every byte is there."""

from __future__ import annotations

import random
import shutil
import signal
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from azcp_runtime.contract import ExitCode

from tests.lab import faults
from tests.lab.dataset import DataSet, plain_data_set
from tests.lab.fault_account import FaultAccount
from tests.lab.faults import FOREVER, Fault
from tests.lab.mpi import Job, Outcome, started
from tests.lab.processes import kill
from tests.lab.stored_blobs import stored
from tests.lab.trees import differences, final_files, wrong_files
from tests.lab.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MIB: Final = 1 << 20
DEADLINE_S: Final = 120.0
STALL: Final = ("--stall-timeout=10", "--retry-time=20")

WORLDS: Final[tuple[tuple[int | None, int | None], ...]] = (
    (None, None),
    (1, 1),
    (2, 2),
    (3, 3),
    (4, 4),
    (4, 2),
    (4, 1),
)
"""Ranks and nodes; None is a plain process."""

SIZES: Final = (0, 1, 511, 4095, 4096, 4097, 70_000, 300_000, MIB - 1, MIB, MIB + 1, 3 * MIB + 5)

OPTIONS: Final = (
    (),
    ("--bcast-chunk=256KiB",),
    ("--memory=64MiB",),
    ("--no-bcast-direct",),
    ("--bcast-writers=5",),
    ("--bcast-tune=always",),
    ("--block-size=64KiB", "--concurrency=16"),
    ("--verify",),
    ("--parallel-files=2",),
    ("--max-bandwidth=40MiB/s",),
    ("--file-shards=3",),
)

FAULTS: Final[tuple[faults.Change, ...]] = (
    faults.busy(),
    faults.busy("1"),
    faults.too_many_requests(),
    faults.server_error(),
    faults.reset_before_headers(),
    faults.reset_mid_body(4000),
    faults.close_mid_body(3999),
    faults.half_range(),
    faults.wrong_start(512),
    faults.wrong_length(7),
    faults.wrong_length(-7),
    faults.chunked(),
    faults.compressed_on_the_way(),
    faults.header_bomb(200),
    faults.slow(MIB),
)

DISTURBANCES: Final = ("none", "kill a rank", "kill mpirun", "SIGTERM", "stop a rank")
CODES: Final = {
    ExitCode.DONE,
    ExitCode.DOWNLOAD,
    ExitCode.BROADCAST,
    ExitCode.RESUMABLE,
    128 + signal.SIGKILL,
    128 + signal.SIGTERM,
    -signal.SIGKILL,
}
"""How a disturbed run may end: by its own codes, or by the signal that it or mpirun got."""


class WrongError(Exception):
    """What must never be: wrong bytes, a hang, a traceback, a code that means nothing."""


@dataclass
class Tally:
    """What happened in all rounds."""

    runs: Counter[str] = field(default_factory=Counter)
    files: int = 0
    bytes: int = 0


class Round:
    """A round.

    Args:
        seed: of everything that is chosen; the same seed makes the same choices.
        folder: for its destination.
        tally: where it is counted.
    """

    def __init__(self, seed: str, folder: Path, tally: Tally) -> None:
        self._dice = random.Random(seed)
        self._dest = folder / "dest"
        self._tally = tally
        self._ranks, self._nodes = self._dice.choice(WORLDS)
        count = self._dice.randrange(3, 120)
        sizes = [self._dice.choice(SIZES) for _ in range(count)]
        self._data = plain_data_set(*sizes, 9 * MIB + 7, seed=self._dice.randrange(1000))

    def run(self) -> None:
        """Run after run on one destination, until one is left alone and completes.

        Raises:
            WrongError: something is not as it must be.
        """
        self._dest.mkdir(parents=True)
        disturbed = [self._dice.choice(DISTURBANCES) for _ in range(self._dice.choice([1, 1, 2, 3]))]
        with FaultAccount(stored(self._data)) as account:
            for how in [*disturbed, "none"]:
                self._one(account, how)
        self._expect_all()
        shutil.rmtree(self._dest)

    def _one(self, account: FaultAccount, how: str) -> None:
        dice = self._dice
        for _ in range(dice.randrange(4)):
            account.script(Fault(dice.choice(FAULTS), times=dice.randrange(1, 4), after=dice.randrange(30)))
        if how != "none":
            account.script(Fault(faults.slow(8 * MIB), times=FOREVER))
        options = [*dice.choice(OPTIONS), *dice.choice(OPTIONS), f"--compare={dice.choice(['size', 'none'])}"]
        share, victim = dice.random(), dice.randrange(self._ranks or 1)
        with started(
            account.url(), self._dest, *STALL, *dict.fromkeys(options), ranks=self._ranks, nodes=self._nodes
        ) as job:
            self._wait_for(job, account, share if how != "none" else 0.0)
            _DISTURB[how](job, victim)
            try:
                outcome = job.wait(DEADLINE_S)
                job.wait_until_gone()
            except TimeoutError as error:
                raise WrongError(f"{how}, {options}: {error}") from None
        self._judge(how, options, outcome)

    def _wait_for(self, job: Job, account: FaultAccount, share: float) -> None:
        start = account.served_bytes()
        until = start + share * self._data.total_bytes
        wait_until(lambda: job.ended() or account.served_bytes() >= until, DEADLINE_S, "bytes served")

    def _judge(self, how: str, options: list[str], outcome: Outcome) -> None:
        self._tally.runs[f"{how}: exit {outcome.code}"] += 1
        if "Traceback" in outcome.text or outcome.code not in CODES or (how == "none" and outcome.code):
            raise WrongError(f"{how}, {options}: exit {outcome.code}\n{outcome.text}")
        # Whoever says that it is done has all; anybody else has nothing wrong.
        check = wrong_files if outcome.code else differences
        for tree in self._trees():
            if wrong := check(tree, self._data.manifest):
                raise WrongError(f"{how}, {options}, {tree}: {wrong[:5]}\n{outcome.text}")

    def _expect_all(self) -> None:
        for tree in self._trees():
            # A partial of a killed run may stay beside a file that the next one finds complete.
            if problems := differences(tree, self._data.manifest):
                raise WrongError(f"{tree}: {problems[:5]}")
            self._tally.files += len(final_files(tree))
            self._tally.bytes += self._data.total_bytes

    def _trees(self) -> list[Path]:
        if self._nodes is None:
            return [self._dest]
        return [self._dest / f"node{node}" for node in range(self._nodes)]


def data_set_of(seed: int) -> DataSet:
    """What the passes in one world move."""
    dice = random.Random(seed)
    return plain_data_set(*[dice.choice(SIZES) for _ in range(60)], 9 * MIB + 7, seed=seed)


def _kill_rank(job: Job, victim: int) -> None:
    if job.ranks():
        job.kill_rank(victim)
    else:
        job.kill_launcher()


def _stop_rank(job: Job, victim: int) -> None:
    # Alone, nobody would be left to end it.
    if len(job.ranks()) > 1:
        kill(job.ranks().get(victim), signal.SIGSTOP)


_DISTURB: Final[dict[str, Callable[[Job, int], None]]] = {
    "none": lambda _job, _victim: None,
    "kill a rank": _kill_rank,
    "kill mpirun": lambda job, _victim: job.kill_launcher(),
    "SIGTERM": lambda job, _victim: job.terminate(),
    "stop a rank": _stop_rank,
}
