"""The report's file: whole or not at all, and what it says of versions, transport and errors."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest
from azcp_runtime import __version__, software
from azcp_runtime.contract import DownloadError, ExitCode, InterruptedRunError
from azcp_runtime.mpi.ranks import PeerFailedError
from azcp_runtime.report import outcome_of, replace_text


def test_a_file_is_replaced_at_once_and_nothing_stays_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("earlier")
    with path.open() as reader:
        replace_text(path, "new")
        assert reader.read() == "earlier"
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("report.json", "new")]


def test_what_a_link_points_to_is_replaced_and_the_link_stays(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "report.json")
    replace_text(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "report.json").read_text() == "text"


def test_a_device_is_written_to_and_stays_a_device(tmp_path: Path) -> None:
    (tmp_path / "sink").symlink_to("/dev/null")
    replace_text(tmp_path / "sink", "text")
    assert (tmp_path / "sink").is_char_device()


def test_a_disk_that_is_full_is_told() -> None:
    with pytest.raises(OSError, match="No space left"):
        replace_text(Path("/dev/full"), "text")


@pytest.mark.parametrize(
    ("error", "status", "code", "reason"),
    [
        (DownloadError("cannot read x", cause="503"), "failed", ExitCode.DOWNLOAD, "cannot read x (503)"),
        (InterruptedRunError("stopped by SIGTERM"), "interrupted", ExitCode.RESUMABLE, "stopped by SIGTERM"),
        (PeerFailedError("azcp-distribute: rank 1 on n1: bad", 7), "failed", 7, "rank 1 on n1: bad"),
        (PeerFailedError("azcp-distribute: rank 1 on n1: end", 75), "interrupted", 75, "rank 1 on n1: end"),
        (ZeroDivisionError("by 0"), "failed", ExitCode.FAULT, "ZeroDivisionError: by 0"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_is_told_with_its_code_and_its_reason(
    error: BaseException, status: str, code: int, reason: str
) -> None:
    assert outcome_of(error) == {"status": status, "exit_code": code, "reason": reason}


def test_without_mpi_only_what_is_there_has_a_version() -> None:
    found = software.versions(maps="")
    assert (found["azcp"], found["Python"]) == (__version__, platform.python_version())
    assert (found["Open MPI"], found["UCX"]) == ("", "")
    assert software.transport("", {"UCX_TLS": "rc", "HOME": "/root"}) == {"UCX_TLS": "rc"}


def test_a_library_that_is_mapped_is_found_once() -> None:
    line = "7f00-7f01 r--p 00000000 08:01 42 /opt/x y/lib/libucp.so.0.0.0"
    assert software.mapped_libucp(f"{line}\n{line}\n") == "/opt/x y/lib/libucp.so.0.0.0"
    assert software.mapped_libucp("7f00-7f01 r--p 00000000 08:01 42 /lib/libc.so.6") is None
