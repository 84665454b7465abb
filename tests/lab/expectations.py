"""What a run must have done, or how it must have failed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final

from azcp_runtime.contract import ExitCode

from tests.lab.summary import Summary, parse_summary
from tests.lab.trees import assert_same

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lab.dataset import DataSet
    from tests.lab.mpi import Outcome

FAILS_WITHIN_S: Final = 40.0
REASON: Final = "azcp-distribute:"


def summary_of(outcome: Outcome) -> Summary:
    """The summary of a run that succeeded."""
    return parse_summary(outcome.expect(ExitCode.DONE).stdout)


def expect_distributed(outcome: Outcome, dest: Path, data_set: DataSet, nodes: int) -> None:
    """Success, the summary of a first run, and the whole data set on each of the simulated nodes."""
    summary = summary_of(outcome)
    assert (summary.files, summary.bytes) == (len(data_set.blobs), data_set.total_bytes)
    assert summary.downloaded_bytes == data_set.total_bytes
    expect_trees(dest, data_set, nodes)


def expect_trees(dest: Path, data_set: DataSet, nodes: int) -> None:
    """The whole data set on each of the simulated nodes, and nothing unfinished."""
    with ThreadPoolExecutor() as threads:
        trees = [dest / f"node{node}" for node in range(nodes)]
        for _ in threads.map(partial(assert_same, manifest=data_set.manifest), trees):
            pass


def expect_failure(outcome: Outcome, codes: ExitCode | set[ExitCode], *told: str) -> None:
    """One of the codes, soon, without a traceback, and one line that tells the reason, once."""
    assert outcome.code in ({codes} if isinstance(codes, ExitCode) else codes), outcome.text
    assert "Traceback" not in outcome.text, outcome.text
    reasons = [line for line in outcome.stderr.splitlines() if line.startswith(REASON)]
    fitting = [line for line in reasons if all(text in line for text in told)]
    assert len(fitting) == 1, f"expected one line with {told}\n{outcome.stderr}"
    assert outcome.seconds < FAILS_WITHIN_S
