"""Ranges stand for the names that Slurm would make of them, and never for more than fit a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
from azcp_runtime.contract import UsageError
from azcp_runtime.launch.hostlist import MOST_HOSTS, expand
from azcp_runtime.launch.hosts import InFile, Listed


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", ["a"]),
        ("a, b ,,c", ["a", "b", "c"]),
        ("llama-[0-2].llama", ["llama-0.llama", "llama-1.llama", "llama-2.llama"]),
        ("n[01-03,20]", ["n01", "n02", "n03", "n20"]),
        ("n[08-11]", ["n08", "n09", "n10", "n11"]),
        ("n[0-1],m,k[7]", ["n0", "n1", "m", "k7"]),
        ("r[1-2]n[0-1]x", ["r1n0x", "r1n1x", "r2n0x", "r2n1x"]),
        ("n[ 1 - 2 , 5 ]".replace(" - ", "-"), ["n1", "n2", "n5"]),
        ("[0-1].x", ["0.x", "1.x"]),
        ("[fd00::3]:2,[fd00::4],fd00::5", ["[fd00::3]:2", "[fd00::4]", "fd00::5"]),
        ("", []),
        (" , ", []),
    ],
)
def test_a_list_stands_for_its_names_in_order(text: str, names: list[str]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("n[0-3", "without its partner"),
        ("n0-3]", "without its partner"),
        ("n[[0-3]]", "without its partner"),
        ("n[3-0]", "counts down"),
        ("n[]", "neither a number nor a range"),
        ("n[1,,2]", "neither a number nor a range"),
        ("n[a-c]", "neither a number nor a range"),
        ("n[1-2-3]", "neither a number nor a range"),
        ("n[-1]", "neither a number nor a range"),
        ("n[0-99999]", f"more than {MOST_HOSTS} hosts"),
        ("n[0-999999999]", f"more than {MOST_HOSTS} hosts"),
        ("n[0-9999]m[0-9999]", f"more than {MOST_HOSTS} hosts"),
        ("n[0-39999],m[0-39999]", f"more than {MOST_HOSTS} hosts"),
        ("n[٣-٤]", "neither a number nor a range"),
    ],
)
def test_a_list_that_is_wrong_is_refused_in_one_line(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as caught:
        expand(text)
    assert "\n" not in str(caught.value)


def test_the_largest_list_is_read_at_once() -> None:
    assert len(set(expand(f"n[0-{MOST_HOSTS - 1}]"))) == MOST_HOSTS


def test_hosts_and_hostfiles_take_ranges(tmp_path: Path) -> None:
    path = tmp_path / "hostfile"
    path.write_text("n[0-1].svc slots=8\nm[5,7]:2\n", encoding="utf-8")
    in_file, listed = InFile(path).find(), Listed("n[0-1],a").find()
    assert in_file is not None
    assert in_file.hosts == ["n0.svc", "n1.svc", "m5", "m7"]
    assert listed is not None
    assert listed.hosts == ["n0", "n1", "a"]
    assert listed.own is None


def test_what_a_range_makes_is_checked_as_a_host() -> None:
    with pytest.raises(UsageError, match="no host name"):
        Listed("-oProxyCommand=[0-1]").find()
    with pytest.raises(UsageError, match="names n1 twice"):
        Listed("n[0-1],n1").find()
