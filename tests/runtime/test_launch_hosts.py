"""Host lists are read strictly: what is no host never becomes a word on somebody's command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from azcp_runtime.contract import PreflightError, UsageError
from azcp_runtime.launch.discovery.find import ALONE, first_of
from azcp_runtime.launch.hosts import (
    Discovery,
    InFile,
    Listed,
    check_distinct,
    check_host,
    check_own_name,
)


def hostfile(folder: Path, text: str) -> InFile:
    path = folder / "hostfile"
    path.write_text(text, encoding="utf-8")
    return InFile(path)


def hosts(way: Discovery) -> list[str]:
    """What that way finds."""
    found = way.find()
    assert found is not None
    return list(found.hosts)


def test_hosts_keep_their_order() -> None:
    assert hosts(Listed("b, a,c")) == ["b", "a", "c"]


def test_a_hostfile_of_mpi_operator_gives_the_names(tmp_path: Path) -> None:
    text = "job-worker-0.job.default.svc slots=1\n# comment\n\njob-worker-1.job.default.svc slots=8 # more\n"
    assert hosts(hostfile(tmp_path, text)) == ["job-worker-0.job.default.svc", "job-worker-1.job.default.svc"]


def test_a_hostfile_of_mpich_gives_the_names_and_addresses(tmp_path: Path) -> None:
    text = "node0:8\n10.0.0.2:4\n[fd00::3]:2\n[fd00::4]\nfd00::5\n"
    assert hosts(hostfile(tmp_path, text)) == ["node0", "10.0.0.2", "fd00::3", "fd00::4", "fd00::5"]


@pytest.mark.parametrize(
    "text", ["-oProxyCommand=x", "a b", "a;b", "$(a)", "`a`", "a|b", "user@host", "", ".", "a/b", "ä", "a\nb"]
)
def test_what_is_no_host_name_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no host name"):
        check_host(text)


def test_one_name_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="names b twice"):
        Listed("a,b,b").find()


@pytest.mark.parametrize("text", ["", " ", ",,"])
def test_an_option_that_names_nobody_is_refused_and_does_not_mean_this_node(text: str) -> None:
    with pytest.raises(UsageError, match="--hosts names no host"):
        first_of([Listed(text)])


def test_a_hostfile_that_cannot_be_read_is_an_error_of_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        InFile(tmp_path / "absent").find()
    with pytest.raises(UsageError, match="names no host"):
        hostfile(tmp_path, "# nobody\n").find()


def test_the_first_way_that_applies_is_taken(tmp_path: Path) -> None:
    assert first_of([Listed(None), hostfile(tmp_path, "a\n"), Listed("b")]).hosts == ["a"]


def test_no_way_means_this_node_alone() -> None:
    assert first_of([Listed(None), InFile(None)]) == ALONE


def test_two_names_of_one_node_are_refused_with_both_names() -> None:
    with pytest.raises(PreflightError, match="a and c are 10.0.0.1"):
        check_distinct({"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.1"})


def test_a_host_name_that_ends_open_mpi_is_refused_with_what_to_cut() -> None:
    check_own_name("n" * 56)
    with pytest.raises(PreflightError, match="shorter by 4"):
        check_own_name("n" * 60)
