"""The command line of azcp-distribute, parsed once into one frozen value."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final, NoReturn, TypeVar

from azcp_runtime import __version__
from azcp_runtime.contract import ENV_SAS, UsageError
from azcp_runtime.contract.options import AUTO, DISTRIBUTE_OPTIONS, Rails
from azcp_runtime.contract.units import parse_rate, parse_size
from azcp_runtime.rails.wish import (
    ENV_CPUS,
    ENV_DEVICES,
    ENV_GID_INDEX,
    GidIndex,
    RailWish,
    parse_devices,
    parse_gid_index,
    parse_rail_cpus,
    parse_rails,
)
from azcp_runtime.source.patterns import MOST_PATTERNS, parse_pattern

DEFAULT_MEMORY_BYTES: Final = 4 << 30
LARGEST_CHUNK_BYTES: Final = 8 << 30
AUTH_KINDS: Final = ("auto", "sas", "key", "identity", "workload", "managed", "cli", "anonymous")
"""What --auth takes."""

_Value = TypeVar("_Value")
_MOST_CONNECTIONS: Final = 300
"""azcopy's own bound; more connections than that to one account only queue."""


@dataclass(frozen=True, slots=True)
class Options:
    """What one run was asked to do. None stands for "find it"."""

    source: str
    dest: Path
    shardlist: Path | None
    compare: str
    filelist: Path | None
    save_filelist: Path | None
    concurrency: int | None
    block_size: int | None
    parallel_files: int | None
    bcast_chunk: int | None
    bcast_pipeline: int | None
    bcast_writers: int | None
    bcast_tune: str
    no_bcast_direct: bool
    shard_size: int | None
    file_shards: int | None
    max_retries: int
    retry_time: float
    max_bandwidth: int | None
    download_ranks: int | None
    verify: bool
    no_progress: bool
    stage: str
    memory: int | None
    expect_ranks: int | None
    skip_archived: bool
    auth: str
    sas_file: Path | None
    dry_run: bool
    report: Path | None
    no_broadcast: bool
    stall_timeout: float
    rails: Rails | None
    rail_devices: tuple[str, ...] | None
    rail_cpus: tuple[tuple[int, ...], ...] | None
    rail_gid_index: GidIndex | None
    require_rdma: bool
    allow_tcp: bool
    include: tuple[bytes, ...]
    exclude: tuple[bytes, ...]

    @property
    def rail_wish(self) -> RailWish:
        """What is said of rails beside their number."""
        return RailWish(self.rail_devices, self.rail_cpus, self.rail_gid_index)


class _Patterns(argparse.Action):
    """Collects the values of a repeatable option in a tuple."""

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        value: object,
        _option: str | None = None,
    ) -> None:
        """Add one."""
        setattr(namespace, self.dest, (*getattr(namespace, self.dest), value))


class _Parser(argparse.ArgumentParser):
    """argparse, but its errors join ours instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        unknown = re.search(r"unrecognized arguments: (--[\w-]+)", message)
        near = get_close_matches(unknown[1], DISTRIBUTE_OPTIONS, 1) if unknown else []
        raise UsageError(message, remedy=f"did you mean {near[0]}?" if near else "see azcp-distribute --help")


def parse_options(argv: Sequence[str]) -> Options:
    """The options of a command line.

    Raises:
        UsageError: anything is wrong; all contradictions are named at once.
    """
    options = Options(**vars(_parser().parse_args(argv)))
    problems = list(_contradictions(options))
    if problems:
        raise UsageError("; ".join(problems), remedy="see azcp-distribute --help")
    return options


def _contradictions(options: Options) -> Sequence[str]:
    rules = (
        (options.shard_size and options.file_shards, "--shard-size and --file-shards exclude each other"),
        (options.compare == "filelist" and not options.filelist, "--compare filelist needs --filelist FILE"),
        (
            options.bcast_chunk and options.bcast_chunk > LARGEST_CHUNK_BYTES,
            "--bcast-chunk is at most 8GiB",
        ),
        (
            options.shard_size and options.bcast_chunk and options.shard_size % options.bcast_chunk,
            "--shard-size must be a multiple of --bcast-chunk",
        ),
        (
            options.no_broadcast and (options.expect_ranks or 1) != 1,
            "--no-broadcast is for one rank, --expect-ranks says more",
        ),
        (
            options.no_broadcast and options.rails not in (None, AUTO, 1),
            "--no-broadcast is for one rank, --rails says more",
        ),
        (
            options.rails is None and options.rail_wish != RailWish() and not options.no_broadcast,
            "--rail-devices, --rail-cpus and --rail-gid-index need --rails",
        ),
        (
            options.require_rdma and options.allow_tcp,
            "--require-rdma and --allow-tcp exclude each other",
        ),
        (
            options.require_rdma and options.no_broadcast,
            "--require-rdma is for a broadcast, --no-broadcast has none",
        ),
        (len(options.include) > MOST_PATTERNS, f"--include is given more than {MOST_PATTERNS} times"),
        (len(options.exclude) > MOST_PATTERNS, f"--exclude is given more than {MOST_PATTERNS} times"),
        *((True, f"--rails: {text}") for text in _rail_problems(options)),
    )
    return [text for broken, text in rules if broken]


def _rail_problems(options: Options) -> Sequence[str]:
    return options.rail_wish.problems(options.rails) if isinstance(options.rails, int) else ()


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="azcp-distribute",
        description="Put SOURCE on every node: 1/N per node from the account, the rest over MPI.",
        epilog="Exit codes: 0 done, 2 usage, 3 listing, 4 plan, 5 download or write, 6 a lost rank, "
        "7 verify, 8 preflight, 75 stopped and resumable: run the same command again.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"azcp-distribute {__version__}")
    parser.add_argument("source", metavar="SOURCE", help="Blob URL of a folder, or a directory")
    parser.add_argument("dest", metavar="DEST", type=_folder, help="directory on every node's own disk")
    _add_what(parser)
    _add_account(parser)
    _add_engine(parser)
    _add_rails(parser)
    _add_run(parser)
    return parser


def _add_what(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is distributed")
    add = group.add_argument
    add("--shardlist", type=Path, metavar="FILE", help="take the listing from FILE (name, tab, size)")
    add(
        "--compare",
        choices=("etag", "none", "size", "filelist"),
        default="etag",
        help="which files are skipped; etag: what DEST's own record says is whole and unchanged",
    )
    add("--filelist", type=Path, metavar="FILE", help="what an earlier run saved, for --compare filelist")
    add("--save-filelist", type=Path, metavar="FILE", help="write the list of this run to FILE")
    add("--skip-archived", action="store_true", help="leave out blobs in the archive tier")
    for name, what in (("--include", "take only"), ("--exclude", "leave out")):
        add(
            name,
            type=_checked(parse_pattern),
            action=_Patterns,
            default=(),
            metavar="GLOB",
            help=f"{what} names below SOURCE that match, repeatable; * and ? stop at a slash, ** does not; "
            "without a slash it is the last part of a name",
        )
    add("--verify", action="store_true", help="digest every file on every node afterwards and compare")


def _add_account(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the account")
    add = group.add_argument
    add(
        "--auth",
        choices=AUTH_KINDS,
        default="auto",
        help="which credential; auto takes a SAS, else a key, else an identity (https), else none; "
        "identity is the one that is configured: workload, managed or cli (az login)",
    )
    add(
        "--sas-file",
        type=Path,
        metavar="FILE",
        help=f"a file with the SAS, read again if refused; or set {ENV_SAS}",
    )
    add(
        "--concurrency",
        type=_count(_MOST_CONNECTIONS),
        metavar="N",
        help="connections per rank (found, at most 16 a CPU)",
    )
    add("--block-size", type=_size, metavar="SIZE", help="bytes of one range request, at most")
    add("--parallel-files", type=_count(1 << 20), metavar="N", help="files read at a time per rank")
    add(
        "--max-retries",
        type=_count(1000, least=0),
        default=10,
        metavar="N",
        help="tries without progress (10)",
    )
    add("--retry-time", type=_seconds, default=300.0, metavar="S", help="seconds without progress (300)")
    add("--max-bandwidth", type=_rate, metavar="RATE", help="cap on the cluster's downloads, 50Gbps")
    add("--download-ranks", type=_count(1 << 20), metavar="K", help="ranks that read from the source")


def _add_engine(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the pass")
    add = group.add_argument
    add(
        "--memory",
        type=_size,
        metavar="SIZE",
        help="buffers of one rank; default 4GiB, or an eighth of what is free",
    )
    add("--bcast-chunk", type=_size, metavar="SIZE", help="bytes of one broadcast, up to 8GiB")
    add("--bcast-pipeline", type=_count(1024), metavar="N", help="broadcasts in flight per lane")
    add("--bcast-writers", type=_count(256), metavar="N", help="threads that write")
    add(
        "--bcast-tune",
        choices=("auto", "off", "always"),
        default="auto",
        help="find chunk and pipeline by a probe of 2 s at most; "
        "auto: where 4 GiB or more move; a chunk that is given stays as it is",
    )
    add("--no-bcast-direct", action="store_true", help="write through the page cache, not O_DIRECT")
    add("--shard-size", type=_size, metavar="SIZE", help="cut files into ranges of this size")
    add("--file-shards", type=_count(1 << 20), metavar="N", help="cut the largest file into N ranges")
    add("--no-broadcast", action="store_true", help="one node alone; no MPI needed")


def _add_rails(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("rails: several ranks per node, each bound to an HCA and its CPUs")
    add = group.add_argument
    add("--rails", type=_checked(parse_rails), metavar="auto|N", help="ranks per node; auto is one per HCA")
    add(
        "--rail-devices",
        type=_checked(parse_devices),
        metavar="A,B",
        help=f"HCA ports or network interfaces, one per rail; or set {ENV_DEVICES}; default: active ports",
    )
    add(
        "--rail-cpus",
        type=_checked(parse_rail_cpus),
        metavar="L/L",
        help=f"CPUs of each rail, 0-23/24-47, or none; or set {ENV_CPUS}; default: the NUMA node of its HCA",
    )
    add(
        "--rail-gid-index",
        type=_checked(parse_gid_index),
        metavar="N",
        help=f"entry of the GID table, or none; or set {ENV_GID_INDEX}; default: RoCE v2 of an IPv4 address",
    )


def _add_run(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the run")
    add = group.add_argument
    add("--expect-ranks", type=_count(1 << 20), metavar="N", help="fail unless the world has N ranks")
    add(
        "--stall-timeout",
        type=_seconds,
        default=300.0,
        metavar="S",
        help="fail after S seconds without a byte (300)",
    )
    add("--require-rdma", action="store_true", help="fail, exit 8, where the fabric would be TCP")
    add("--allow-tcp", action="store_true", help="TCP is as good as RDMA: no warning, no failure")
    add("--dry-run", action="store_true", help="print the plan; read and write nothing")
    add("--report", type=Path, metavar="FILE", help="write a JSON report to FILE on rank 0's node")
    add("--no-progress", action="store_true", help="no progress on standard error")
    add("--stage", choices=("all", "pmix", "init", "list", "diff"), default="all", help=argparse.SUPPRESS)


def _folder(text: str) -> Path:
    if not text:  # an unset variable in a script; Path("") would be the current folder
        raise argparse.ArgumentTypeError("DEST is empty")
    return Path(text)


def _count(most: int, *, least: int = 1) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdigit() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} to {most}")
        return int(text)

    return parse


def _checked(parse: Callable[[str], _Value]) -> Callable[[str], _Value]:
    def checked(text: str) -> _Value:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return checked


def _seconds(text: str) -> float:
    try:
        seconds = float(text.removesuffix("s"))
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no time in seconds")
    return seconds


def _size_or_found(text: str) -> int | None:
    return parse_size(text) or None  # azcp-cluster: 0 stands for "not given"


_size = _checked(_size_or_found)
_rate = _checked(parse_rate)
