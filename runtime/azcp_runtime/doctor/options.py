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
from azcp_runtime.options import AUTH_KINDS


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """What is to be looked at, and what it must come up to. Sizes in bytes; None where nothing was asked."""

    source: str | None
    dest: Path | None
    need: int | None
    shm: int | None
    expect_ranks: int | None
    require_rdma: bool
    allow_tcp: bool
    auth: str
    sas_file: Path | None
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
    words = vars(_parser().parse_args(argv))
    folder = words.pop("folder")
    options = DoctorOptions(**words | {"dest": words["dest"] or folder})
    rules = (
        (bool(folder and words["dest"]), "DEST and --dest are the same, and both are given"),
        (bool(options.need and not options.dest), "--need asks for space in --dest DIR, which is missing"),
        (options.require_rdma and options.allow_tcp, "--require-rdma and --allow-tcp exclude each other"),
    )
    problems = [text for broken, text in rules if broken]
    if problems:
        raise UsageError("; ".join(problems), remedy="see azcp-doctor --help")
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
    add("source", nargs="?", metavar="SOURCE", help="what a run would read: whether it can be, and as whom")
    add("folder", nargs="?", type=_folder, metavar="DEST", help="the same as --dest")
    add("--json", action="store_true", help="schema, and a list of nodes with their checks, as JSON")
    add("--dest", type=_folder, metavar="DIR", help="where a run would write; up to 256 MiB are tried there")
    add("--need", type=_size, metavar="SIZE", help="fail unless so much is free in --dest")
    add("--require-rdma", action="store_true", help="fail where the fabric would be TCP")
    add("--allow-tcp", action="store_true", help="TCP is as good as RDMA")
    add("--auth", choices=AUTH_KINDS, default="auto", help="as of azcp-distribute")
    add("--sas-file", type=Path, metavar="FILE", help="as of azcp-distribute")
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
