"""The table [nccl-test] of a job.toml: what of the all-reduce test differs from that of the VM size."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from azcp_runtime.contract.units import parse_size

from azcp_kit.spec import names
from azcp_kit.spec.durations import parse_duration
from azcp_kit.spec.reader import Reader

THRESHOLD: Final = 0.9
"""The part of the expected bandwidth that must be reached."""

_MIN_BYTES: Final = 8
_MAX_BYTES: Final = 16 << 30
_ITERATIONS: Final = 20
_TIME_S: Final = 1800
_LARGEST_GBPS: Final = 100_000.0
_MODULE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]*", re.ASCII)
_PROGRAM: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class NcclTest:
    """The test; an empty text leaves it to the VM size.

    Args:
        binary: all_reduce_perf, by its path or by its name on PATH.
        image: file of the image that it runs in, .sqsh or .sif; empty for the job's.
        topology: NCCL's topology file on the nodes.
        modules: to load where there is no container; None leaves them to the VM size.
        min_bytes: the first message size.
        max_bytes: the last one; each is twice the one before.
        iterations: of each size.
        expected_gbps: bus bandwidth to compare with; None takes the published figure.
        threshold: the part of it that must be reached.
        time_s: the job's time limit.
        env: variables of the test, over those of the VM size.
    """

    binary: str
    image: str
    topology: str
    modules: tuple[str, ...] | None
    min_bytes: int
    max_bytes: int
    iterations: int
    expected_gbps: float | None
    threshold: float
    time_s: int
    env: Mapping[str, str]


def read_nccl(table: Reader) -> NcclTest:
    """The table."""
    expected = table.number("expected-gbps", 0.0, least=0.001, most=_LARGEST_GBPS)
    test = NcclTest(
        binary=table.text("binary", check=_program),
        image=table.text("image", check=_path),
        topology=table.text("topology", check=_path),
        modules=_modules(table) if table.has("modules") else None,
        min_bytes=table.parsed("min-bytes", _MIN_BYTES, parse_size),
        max_bytes=table.parsed("max-bytes", _MAX_BYTES, parse_size),
        iterations=table.whole("iterations", _ITERATIONS, least=1, most=100_000),
        expected_gbps=expected or None,
        threshold=table.number("threshold", THRESHOLD, least=0.01, most=1.0),
        time_s=table.parsed("time", _TIME_S, parse_duration),
        env=table.texts("env", names.variable, names.any_text),
    )
    table.finish()
    if not 0 < test.min_bytes <= test.max_bytes:
        table.problem("min-bytes", "is nothing, or more than max-bytes")
    return test


def _modules(table: Reader) -> tuple[str, ...]:
    modules = table.words("modules")
    for module in modules:
        if not _MODULE.fullmatch(module):
            table.problem("modules", f"{module!r} is no name of a module such as mpi/hpcx")
    return modules


def _program(text: str) -> str:
    if "=" in text:
        return "has a = in it, and so env takes it for a variable"
    is_name = _PROGRAM.fullmatch(text)
    return "" if is_name or PurePosixPath(text).is_absolute() else "is neither an absolute path nor a name"


def _path(text: str) -> str:
    return "" if PurePosixPath(text).is_absolute() else "is not absolute"
