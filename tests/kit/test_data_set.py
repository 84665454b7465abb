"""The demo's data set is the same each time, and comparing folders finds every kind of difference."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from azcp_kit.compare import compare_folders, file_names, folder_bytes
from azcp_kit.dataset import data_set_layout, make_data_set
from azcp_kit.listing import write_listing

if TYPE_CHECKING:
    from pathlib import Path

MIB = 2**20


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "a b%2F#+ü").write_bytes(b"0" * 5000)
    (folder / "deep" / "er" / "large").write_bytes(b"1" * (2 * MIB + 3))
    (folder / "empty").write_bytes(b"")
    return folder


@pytest.fixture
def copies(source: Path, tmp_path: Path) -> list[Path]:
    return [shutil.copytree(source, tmp_path / f"node{index}") for index in range(2)]


def differences(source: Path, copies: list[Path]) -> tuple[str, ...]:
    return compare_folders(source, copies, frozenset({".azcp"})).differences


def test_a_data_set_is_the_same_each_time(tmp_path: Path) -> None:
    for name in ("one", "two"):
        make_data_set(tmp_path / name, 40 * MIB)
    found = compare_folders(tmp_path / "one", [tmp_path / "two"], frozenset())
    assert (found.differences, found.size_bytes) == ((), folder_bytes(tmp_path / "two"))


def test_another_seed_gives_other_bytes(tmp_path: Path) -> None:
    for seed in (1, 2):
        make_data_set(tmp_path / str(seed), 40 * MIB, seed)
    assert differences(tmp_path / "1", [tmp_path / "2"])


def test_a_data_set_has_the_size_asked_for_less_a_rounding() -> None:
    assert sum(size for _, size in data_set_layout(400 * MIB, seed=1)) == pytest.approx(400 * MIB, abs=10)


def test_a_data_set_has_empty_files_unaligned_files_and_names_that_must_not_be_decoded() -> None:
    layout = dict(data_set_layout(400 * MIB, seed=1))
    assert {0, 1, 4095, 4096, 4097} <= set(layout.values())
    assert "names/percent%2Fencoded.txt" in layout
    assert len(layout) == len(set(layout)) > 1000


def test_equal_copies_are_equal(source: Path, copies: list[Path]) -> None:
    found = compare_folders(source, copies, frozenset())
    assert (found.files, found.size_bytes, found.differences) == (3, 5000 + 2 * MIB + 3, ())


def test_one_other_byte_in_the_last_block_is_found(source: Path, copies: list[Path]) -> None:
    with (copies[1] / "deep" / "er" / "large").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"2")
    assert differences(source, copies) == (f"{copies[1]}/deep/er/large differs from the source",)


@pytest.mark.parametrize("length", [4999, 5001, 0])
def test_a_file_of_another_length_is_found(source: Path, copies: list[Path], length: int) -> None:
    (copies[0] / "a b%2F#+ü").write_bytes(b"0" * length)
    assert differences(source, copies) == (f"{copies[0]}/a b%2F#+ü differs from the source",)


def test_a_missing_file_is_found(source: Path, copies: list[Path]) -> None:
    (copies[0] / "empty").unlink()
    assert differences(source, copies) == (f"{copies[0]}/empty is missing",)


def test_a_file_too_many_is_found_but_not_the_state_of_the_runtime(source: Path, copies: list[Path]) -> None:
    (copies[0] / ".azcp").mkdir()
    (copies[0] / ".azcp" / "journal").write_bytes(b"x")
    (copies[1] / "deep" / ".azcp").write_bytes(b"x")
    assert differences(source, copies) == (f"{copies[1]}/deep/.azcp is not in the source",)


def test_a_destination_that_is_not_there_lacks_every_file(source: Path, tmp_path: Path) -> None:
    assert len(differences(source, [tmp_path / "absent"])) == len(file_names(source))


def test_a_listing_has_a_line_of_name_and_size_for_each_file(source: Path, tmp_path: Path) -> None:
    write_listing(source, tmp_path / "listing.tsv")
    expected = f"a b%2F#+ü\t5000\ndeep/er/large\t{2 * MIB + 3}\nempty\t0\n"
    assert (tmp_path / "listing.tsv").read_text(encoding="utf-8") == expected
