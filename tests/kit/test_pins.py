"""An archive goes into an image by its digest: a pin, or what the user names with one."""

from __future__ import annotations

import re
import tomllib

import pytest
from azcp_kit.payload import pins
from azcp_kit.payload.pins import Archive, named, pinned
from azcp_runtime.contract import UsageError

DIGEST = "0123456789abcdef" * 4
PINS = pins.PINS


def test_every_pin_has_a_version_an_address_and_a_digest() -> None:
    for name, rows in tomllib.loads(PINS.read_text(encoding="utf-8")).items():
        for row in rows:
            assert set(row) - {"arch"} == {"version", "url", "sha256"}, name
            assert re.fullmatch("[0-9a-f]{64}", row["sha256"]), row
            assert row["url"].startswith("https://"), row
            assert row["version"] in row["url"].replace("%2B", "+"), row


def test_no_two_pins_are_of_the_same_version() -> None:
    for rows in tomllib.loads(PINS.read_text(encoding="utf-8")).values():
        keys = [(row["version"], row.get("arch")) for row in rows]
        assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("arch", ["amd64", "arm64"])
def test_the_interpreter_is_pinned_for_each_architecture(arch: str) -> None:
    machine = {"amd64": "x86_64", "arm64": "aarch64"}[arch]
    assert f"-{machine}-unknown-linux-gnu-" in pinned("python", arch=arch).file_name


def test_the_default_sources_are_the_pair_that_the_published_figures_were_measured_with() -> None:
    assert (pinned("openmpi").version, pinned("ucx").version) == ("4.1.6", "1.15.0")


def test_a_pin_of_another_version_is_found_by_it() -> None:
    assert pinned("openmpi", "5.0.8") == named("openmpi", "5.0.8")
    assert pinned("openmpi", "5.0.8").file_name == "openmpi-5.0.8.tar.bz2"


def test_a_pinned_interpreter_is_named_by_its_version_for_an_architecture() -> None:
    version = pinned("python", arch="arm64").version
    assert named("python", version, "arm64") == pinned("python", arch="arm64")


def test_a_version_without_a_pin_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match="no pin for ucx 1.14.0 .pinned: 1.15.0, 1.18.0, 1.19.0.") as failure:
        named("ucx", "1.14.0")
    assert "--ucx URL-OR-PATH@sha256:DIGEST" in failure.value.remedy


def test_an_architecture_without_a_pin_is_refused() -> None:
    with pytest.raises(UsageError, match="no pin for python  on riscv64 .pinned: none."):
        pinned("python", arch="riscv64")


def test_a_path_is_taken_as_it_is() -> None:
    assert named("openmpi", f"../src/openmpi-4.1.9rc1.tar.gz@sha256:{DIGEST.upper()}") == Archive(
        "openmpi", "4.1.9rc1", "../src/openmpi-4.1.9rc1.tar.gz", DIGEST
    )


@pytest.mark.parametrize(
    ("location", "file_name"),
    [
        ("https://mirror.example/a/ucx-1.20.0.tar.gz", "ucx-1.20.0.tar.gz"),
        ("HTTP://mirror.example:8080/ucx-1.20.0.tar.gz?sig=secret#part", "ucx-1.20.0.tar.gz"),
    ],
)
def test_an_address_is_remote_and_its_file_is_the_last_part_of_its_path(
    location: str, file_name: str
) -> None:
    archive = named("ucx", f"{location}@sha256:{DIGEST}")
    assert (archive.is_remote, archive.file_name, archive.version) == (True, file_name, "1.20.0")
    assert "secret" not in archive.shown_location


def test_a_version_that_a_name_does_not_tell_is_empty() -> None:
    assert named("python", f"/srv/interpreter.tar@sha256:{DIGEST}").version == ""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("https://mirror.example/ucx-1.20.0.tar.gz", "has no digest"),
        ("ucx-1.20.0.tar.gz", "has no digest"),
        ("", "has no digest"),
        ("ucx.tar@sha256:", "is no sha256"),
        (f"ucx.tar@sha256:{DIGEST[1:]}", "is no sha256"),
        (f"ucx.tar@sha256:{DIGEST}0", "is no sha256"),
        (f"ucx.tar@sha256:{'g' * 64}", "is no sha256"),
        (f"ucx.tar@sha256:{DIGEST}\n", "is no sha256"),
        (f"file:///ucx.tar@sha256:{DIGEST}", "http, https and paths are known"),
        (f"ftp://mirror.example/ucx.tar@sha256:{DIGEST}", "http, https and paths are known"),
        (f"https://mirror.example/@sha256:{DIGEST}", "names no file"),
        (f"@sha256:{DIGEST}", "names no file"),
        (f"https://[mirror/ucx.tar@sha256:{DIGEST}", "is given no address"),
    ],
)
def test_what_names_no_archive_with_its_digest_is_refused(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        named("ucx", text)


def test_an_address_with_a_password_is_refused_without_repeating_it() -> None:
    with pytest.raises(UsageError, match="must not hold a password") as failure:
        named("ucx", f"https://me:hunter2@mirror.example/ucx.tar.gz@sha256:{DIGEST}")
    assert "hunter2" not in str(failure.value)
