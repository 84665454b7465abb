"""Repeated runs with random faults and kills: python bench/soak.py --minutes M [--seed S] [--round N].

A quarter of the time goes to passes in one world of ranks, whose memory, threads, descriptors and
communicators must not grow; the rest to rounds of disturbed runs, each checked byte by byte.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from launch import mpirun, run
from table import Table

_ROOT: Final = Path(__file__).parents[1]
_RANKS: Final = 4
_WARM_UP: Final = 5
_MOST_GROWTH_KIB: Final = 8192
_PASSES_SHARE: Final = 0.25
_TOLD_EVERY: Final = 10


def main(arguments: list[str] | None = None) -> int:
    """Soak; 0 where nothing was wrong and nothing leaked."""
    parser = argparse.ArgumentParser(prog="bench/soak.py", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32))
    parser.add_argument("--round", type=int, help="this round of the seed alone")
    options = parser.parse_args(arguments)
    sys.path.insert(0, str(_ROOT))  # the rounds are made of the parts of the tests
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    print(f"seed {options.seed}", flush=True)
    if options.round is not None:
        return _rounds(options.seed, 0.0, options.round)
    seconds = options.minutes * 60
    leaks = _passes(options.seed, seconds * _PASSES_SHARE)
    return _rounds(options.seed, seconds * (1 - _PASSES_SHARE), 0) or leaks


def _passes(seed: int, seconds: float) -> int:
    """Passes in one world; 1 where something grew."""
    from soak_round import data_set_of

    from tests.lab.fault_account import FaultAccount
    from tests.lab.stored_blobs import stored

    program = [sys.executable, str(Path(__file__).with_name("soak_passes.py"))]
    with (
        tempfile.TemporaryDirectory(prefix="azcp-soak-") as name,
        FaultAccount(stored(data_set_of(seed))) as account,
    ):
        words = [*mpirun(_RANKS), *program, account.url(), name, f"{seconds:.1f}"]
        run(words, {"AZCP_SIMULATE_NODES": str(_RANKS), "OMPI_MCA_btl_vader_single_copy_mechanism": "none"})
        rows = [json.loads(Path(name, f"{rank}.json").read_text()) for rank in range(_RANKS)]
    passes = len(rows[0])
    before = [ranks[min(_WARM_UP, passes - 1)] for ranks in rows]
    after = [ranks[-1] for ranks in rows]
    growth = {what: max(b[what] - a[what] for a, b in zip(before, after, strict=True)) for what in after[0]}
    leaking = [
        what for what, grown in growth.items() if grown > (_MOST_GROWTH_KIB if what == "resident_kib" else 0)
    ]
    shown = [
        (
            what,
            str(max(row[what] for row in before)),
            str(max(row[what] for row in after)),
            "" if what not in leaking else "leaks",
        )
        for what in growth
    ]
    title = f"{passes} passes in one world of {_RANKS} ranks, the largest of the ranks"
    print(
        Table(title, ("figure", f"after {_WARM_UP + 1}", "after all", ""), tuple(shown)),
        end="\n\n",
        flush=True,
    )
    return 1 if leaking else 0


def _rounds(seed: int, seconds: float, first: int) -> int:
    """Rounds until the time is over, at least one; 1 where something was wrong."""
    from soak_round import Round, Tally, WrongError

    tally, number, ends_at = Tally(), first, time.monotonic() + seconds
    while number == first or time.monotonic() < ends_at:
        folder = Path(tempfile.mkdtemp(prefix="azcp-soak-"))
        try:
            Round(f"{seed}-{number}", folder, tally).run()
        except WrongError as error:
            print(f"round {number} of seed {seed} (its destination is kept in {folder}): {error}", flush=True)
            return 1
        folder.rmdir()
        number += 1
        if number % _TOLD_EVERY == 0:
            print(f"{number} rounds, {sum(tally.runs.values())} runs", file=sys.stderr, flush=True)
    runs = tuple((how, str(count)) for how, count in sorted(tally.runs.items()))
    title = f"{number - first} rounds of seed {seed}: {tally.files} files, {tally.bytes} bytes, all right"
    print(Table(title, ("disturbance and exit code", "runs"), runs), flush=True)
    return 0


if __name__ == "__main__":
    os.environ.pop("AZCP_SIMULATE_NODES", None)
    sys.exit(main())
