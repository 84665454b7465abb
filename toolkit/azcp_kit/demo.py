"""The demo: a real run of the distributor between a local Blob endpoint and nodes that share this machine."""

from __future__ import annotations

import logging
import shlex
import shutil
import signal
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from azcp_runtime.contract import (
    ENV_ACCOUNT_KEY,
    ENV_PROGRESS,
    ENV_SAS,
    ENV_SIMULATE_NODES,
    STATE_DIR,
    PreflightError,
    VerifyError,
)

from azcp_kit.azurite import find_azurite, run_azurite
from azcp_kit.compare import compare_folders, folder_bytes
from azcp_kit.dataset import make_data_set
from azcp_kit.listing import write_listing
from azcp_kit.mpirun import run_ranks
from azcp_kit.picture import write_picture
from azcp_kit.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTAINER: Final = "demo"
SHOWN_DIFFERENCES: Final = 10
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DemoOptions:
    """What `azcp-kit demo` was asked for.

    `work` holds the data while it runs (the temporary folder if None), `output` what stays; `source_dir` is a
    data set of the user's own; `progress` is what ENV_PROGRESS takes, or empty to let the ranks choose.
    """

    ranks: int
    size_bytes: int
    output: Path
    work: Path | None = None
    source_dir: Path | None = None
    keep: bool = False
    progress: str = ""


@dataclass(frozen=True)
class Source:
    """What the ranks read: SOURCE as given to them, the environment it needs, the same bytes as a folder."""

    address: str
    settings: dict[str, str]
    folder: Path


def run_demo(options: DemoOptions) -> int:
    """Make, serve, distribute, compare and draw; gives the distributor's exit status.

    Raises:
        PreflightError: something the demo needs is missing.
        VerifyError: a byte of a destination differs from the source.
    """
    try:
        options.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PreflightError(
            f"cannot make {options.output}: {error.strerror}", remedy="name another with --output"
        ) from error
    report, picture = options.output / "report.json", options.output / "timeline.html"
    # What an earlier run left must not pass for this one's.
    report.unlink(missing_ok=True)
    picture.unlink(missing_ok=True)
    with _work_folder(options) as work, _source(options, work) as source:
        _log.info("distributing to %d nodes, all of them on this machine", options.ranks)
        status = _distribute(source, work / "nodes", report, options)
        if status:
            _log.error("azcp-distribute ended with %s", describe_status(status))
            return status
        _compare(source.folder, work / "nodes", options.ranks)
        write_listing(source.folder, options.output / "listing.tsv")
    _log.info("timeline: %s", write_picture(report, picture).resolve())
    _say_what_next(options.output)
    return 0


def describe_status(status: int) -> str:
    """Mpirun's exit status in words: a rank's own exit code, or 128 more than the signal that ended it."""
    killed = status - 128
    known = {number.value for number in signal.Signals}
    return f"status {status} ({signal.Signals(killed).name})" if killed in known else f"status {status}"


@contextmanager
def _work_folder(options: DemoOptions) -> Iterator[Path]:
    """A folder of the demo's own, removed at the end unless it is to be kept."""
    if options.work:
        options.work.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="azcp-demo-", dir=options.work))
    try:
        _refuse_a_small_disk(work, options)
        yield work
    finally:
        if options.keep:
            _log.info("kept: %s", work)
        else:
            shutil.rmtree(work)


def _refuse_a_small_disk(work: Path, options: DemoOptions) -> None:
    size_bytes = folder_bytes(options.source_dir) if options.source_dir else options.size_bytes
    # The source and the emulator's copy of it, one destination for each rank, and a tenth for what they add.
    copies = options.ranks + (0 if options.source_dir else 2)
    needed = int(size_bytes * copies * 1.1)
    free = shutil.disk_usage(work).free
    if free < needed:
        raise PreflightError(
            f"the demo needs {format_size(needed)} and {work.parent} has {format_size(free)} free",
            remedy="name another folder with --work, or a smaller --size",
        )


@contextmanager
def _source(options: DemoOptions, work: Path) -> Iterator[Source]:
    if options.source_dir:
        yield Source(str(options.source_dir), {}, options.source_dir)
        return
    folder = work / "source"
    started = time.monotonic()
    made = make_data_set(folder, options.size_bytes)
    took = time.monotonic() - started
    _log.info("data set: %d files, %s (%.1f s)", made.files, format_size(made.size_bytes), took)
    if find_azurite():
        with _blob_source(folder, work) as source:
            yield source
    else:
        _log.info("Azurite is not installed (it needs Node.js): the source is a directory instead")
        yield Source(str(folder), {}, folder)


@contextmanager
def _blob_source(folder: Path, work: Path) -> Iterator[Source]:
    # The SDK takes a third of a second to import, and a directory as the source needs none of it.
    from azcp_kit.upload import upload_folder

    with run_azurite(work / "azurite") as azurite:
        started = time.monotonic()
        blobs = upload_folder(folder, azurite, CONTAINER)
        took = time.monotonic() - started
        _log.info("Azurite: %d blobs at %s/%s (%.1f s)", blobs, azurite.endpoint, CONTAINER, took)
        yield Source(f"{azurite.endpoint}/{CONTAINER}", {ENV_ACCOUNT_KEY: azurite.key}, folder)


def _distribute(source: Source, destination: Path, report: Path, options: DemoOptions) -> int:
    destination.mkdir()
    # A credential of the user's own account must not be tried on the demo's.
    settings = {ENV_SAS: "", **source.settings, ENV_SIMULATE_NODES: str(options.ranks)}
    if options.progress:
        settings |= {ENV_PROGRESS: options.progress, "COLUMNS": str(shutil.get_terminal_size().columns)}
    command = [sys.executable, "-m", "azcp_runtime", source.address, str(destination)]
    return run_ranks(options.ranks, [*command, "--verify", "--report", str(report)], settings)


def _compare(folder: Path, destination: Path, nodes: int) -> None:
    started = time.monotonic()
    copies = [destination / f"node{index}" for index in range(nodes)]
    found = compare_folders(folder, copies, ignore=frozenset({STATE_DIR}))
    for line in found.differences[:SHOWN_DIFFERENCES]:
        _log.error("%s", line)
    if found.differences:
        raise VerifyError(f"the destinations differ from the source in {len(found.differences)} places")
    _log.info(
        "compared: every byte of %d files (%s) on each of %d nodes is the source's (%.1f s)",
        found.files,
        format_size(found.size_bytes),
        nodes,
        time.monotonic() - started,
    )


def _say_what_next(output: Path) -> None:
    listing = shlex.quote(str(output / "listing.tsv"))
    _log.info("")
    _log.info("What 64 nodes would make of it:  azcp-kit plan --listing %s --ranks 64", listing)
    _log.info(
        "Your own data set:  azcp-distribute https://ACCOUNT.blob.core.windows.net/CONTAINER/PREFIX/ DEST"
    )
