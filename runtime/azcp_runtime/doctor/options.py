"""The command line of azcp-doctor, parsed once into one frozen value."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from azcp_runtime import __version__
from azcp_runtime.contract import UsageError
from azcp_runtime.contract.units import parse_size


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """What is to be looked at, and what it must come up to. Sizes in bytes; None where nothing was asked."""

    dest: Path | None
    need: int | None
    shm: int | None
    expect_ranks: int | None
    require_rdma: bool
    json: bool


class _Parser(argparse.ArgumentParser):
    """argparse, but its errors join ours instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, remedy="see azcp-doctor --help")


def parse_options(argv: Sequence[str]) -> DoctorOptions:
    """The options of a command line.

    Raises:
        UsageError: anything is wrong.
    """
    options = DoctorOptions(**vars(_parser().parse_args(argv)))
    if options.need and not options.dest:
        raise UsageError("--need asks for space in --dest DIR, which is missing")
    return options


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="azcp-doctor",
        description="Examine this node, or under azcp-mpirun all: what would slow a run down or end it.",
        epilog="Exit code 0: nothing fails; 8: something does; 2: wrong command line.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--version", action="version", version=f"azcp-doctor {__version__}")
    add("--json", action="store_true", help="a list of nodes with their checks, as JSON")
    add("--dest", type=_folder, metavar="DIR", help="where a run would write; up to 256 MiB are tried there")
    add("--need", type=_size, metavar="SIZE", help="fail unless so much is free in --dest")
    add("--require-rdma", action="store_true", help="fail where the fabric would be TCP")
    add("--expect-ranks", type=_count, metavar="N", help="fail unless the world has N ranks")
    add("--shm", type=_size, metavar="SIZE", help="fail unless /dev/shm has this size")
    return parser


def _folder(text: str) -> Path:
    if not text:  # an unset variable in a script; Path("") would be the current folder
        raise argparse.ArgumentTypeError("DIR is empty")
    return Path(text)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
