"""--report: one run as JSON, for machines and for the timeline; written also of a run that failed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from azcp_runtime import software
from azcp_runtime.contract import REPORT_SCHEMA, AzcpError, ExitCode, WriteError
from azcp_runtime.engine.totals import RankTotals, retries_by_class
from azcp_runtime.mpi.ranks import PeerFailedError, Seat
from azcp_runtime.options import Options
from azcp_runtime.scrub import scrub

_NOT_SHOWN: Final = ("source", "dest", "sas_file", "auth")
_FOR_SUMMARY: Final = ("fetch_span", "bcast_span", "retries")


class Record:
    """What is known of a run so far; as a context it reports an error that ends the run, and lets it pass.

    Args:
        options: the command line.
        seat: this rank; only rank 0 writes.
        env: the environment, with what must not be shown.

    Attributes:
        source: the location without its signature, once it is known.
        stages: the figures of the stages that have ended.
        plan: the plan's figures, once it is made.
        tune: what the probe of fabric and disks found; empty where there was none.
    """

    def __init__(self, options: Options, seat: Seat, env: Mapping[str, str]) -> None:
        self._options = options
        self._seat = seat
        self._env = env
        self.source = ""
        self.stages: dict[str, dict[str, float]] = {}
        self.plan: dict[str, float] = {}
        self.tune: dict[str, object] = {}
        self._totals: Callable[[], Sequence[RankTotals]] = list

    def follow(self, totals: Callable[[], Sequence[RankTotals]]) -> None:
        """What gives the figures of the ranks: of this one alone while the pass is running."""
        self._totals = totals

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            return
        try:
            self.write(outcome_of(error))
        except WriteError as failed:  # the run's own error is the one to end with
            print(f"azcp-distribute: {failed}", file=sys.stderr, flush=True)

    def write(self, outcome: Mapping[str, object]) -> None:
        """Write the report where one was asked for.

        Raises:
            WriteError: the file cannot be written.
        """
        path = self._options.report
        if path is None or self._seat.rank != 0:
            return
        try:
            replace_text(path, json.dumps(self._report(outcome), indent=1) + "\n")
        except OSError as error:
            raise WriteError(f"cannot write the report {path}: {error.strerror}") from error

    def _report(self, outcome: Mapping[str, object]) -> dict[str, object]:
        maps = software.memory_maps()
        rows = self._totals()
        told = {
            "schema": REPORT_SCHEMA,
            "outcome": dict(outcome),
            "versions": software.versions(maps),
            "transport": software.transport(maps, self._env),
            "source": self.source,
            "dest": str(self._options.dest),
            "nodes": self._seat.nodes,
            "rails": self._seat.rails,
            "options": shown_options(self._options),
            "plan": self.plan,
            "tune": self.tune,
            "stages": self.stages,
            "retries": retries_by_class(rows),
        }
        shown = {name: self._scrubbed(value) for name, value in told.items()}
        return shown | {"ranks": [_rank(row) for row in rows]}

    def _scrubbed(self, value: object) -> object:
        if isinstance(value, str):
            return scrub(value, self._env)
        if isinstance(value, dict):
            return {name: self._scrubbed(each) for name, each in value.items()}
        return value


DONE: Final = {"status": "done", "exit_code": int(ExitCode.DONE), "reason": ""}


def outcome_of(error: BaseException) -> dict[str, object]:
    """How a run ended that this error ended: failed or interrupted, the exit code, and why."""
    if isinstance(error, PeerFailedError):
        code, reason = error.code, error.line.removeprefix("azcp-distribute: ")
    elif isinstance(error, AzcpError):
        code, reason = error.exit_code, str(error)
    else:
        code, reason = ExitCode.FAULT, f"{type(error).__name__}: {error}"
    status = "interrupted" if code == ExitCode.RESUMABLE else "failed"
    return {"status": status, "exit_code": int(code), "reason": reason}


def shown_options(options: Options) -> dict[str, object]:
    """The options that were given or have a default; without where from and to, and the credential."""
    return {
        name: str(value) if isinstance(value, Path) else value
        for name, value in asdict(options).items()
        if name not in _NOT_SHOWN and value is not None
    }


def replace_text(path: Path, text: str) -> None:
    """Let a file have this text, or what it had before: never a part of it.

    Raises:
        OSError: neither a file beside it nor the file itself can be written.
    """
    target = path.resolve()
    in_place = target.exists() and not target.is_file()  # /dev/stdout, a pipe
    if in_place or not os.access(target.parent, os.W_OK):
        path.write_text(text, encoding="utf-8")
        return
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(target)
    except OSError:
        with suppress(OSError):
            beside.unlink()
        raise


def _rank(row: RankTotals) -> dict[str, object]:
    return {name: value for name, value in asdict(row).items() if name not in _FOR_SUMMARY}
