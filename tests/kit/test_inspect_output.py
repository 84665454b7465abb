"""Facts go to a file and back, are shown without danger, and a base that cannot be injected is refused."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from azcp_kit.image.conclude import conclude
from azcp_kit.inspect.facts import ImageFacts
from azcp_kit.inspect.facts_json import from_json, read_facts, to_json, write_facts
from azcp_kit.inspect.facts_table import facts_tables
from azcp_kit.inspect.refuse import glibc_numbers, refusals, refuse
from azcp_kit.shown import shown
from azcp_runtime.contract import ExitCode, PreflightError, UsageError
from rich.console import Console

from tests.kit.image_tree import IDENTITY, Content, facts_of, glibc, musl

HOSTILE = "\x1b]0;owned\x07\x9b31m\r\u202e[bold red]x"


def sample() -> ImageFacts:
    files: dict[str, Content] = {**glibc("2.36"), "/usr/bin/mpirun": b"", "/usr/bin/python3": b""}
    return facts_of(files, {"Env": ["UCX_TLS=tcp", "HF_TOKEN=s3cr3t"], "Labels": {"a": "b"}, "User": "1000"})


def hostile() -> ImageFacts:
    files: dict[str, Content] = {
        **glibc("2.36"),
        "/etc/os-release": f"PRETTY_NAME='{HOSTILE}'\n",
        "/etc/passwd": f"{HOSTILE}:x:0:0::{HOSTILE}:\n",
    }
    config = {
        "Env": [f"UCX_{HOSTILE}={HOSTILE}", f"CUDA_VERSION={HOSTILE}"],
        "Entrypoint": [HOSTILE],
        "WorkingDir": HOSTILE,
        "Healthcheck": {"Test": [HOSTILE]},
        "OnBuild": [HOSTILE],
        "Volumes": {HOSTILE: {}},
    }
    return facts_of(files, config, dataclasses.replace(IDENTITY, reference=HOSTILE, variant=HOSTILE))


def table_of(facts: ImageFacts, plan: tuple[str, ...] = ()) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(facts_tables(facts, plan))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("make", [sample, hostile])
def test_facts_come_back_from_their_json(make: Callable[[], ImageFacts]) -> None:
    facts = make()
    assert from_json(to_json(facts)) == facts
    assert from_json(to_json(facts, {"plan": ["x"]})) == facts


def test_the_json_is_ascii_and_has_its_schema() -> None:
    text = to_json(hostile())
    assert text.isascii()
    assert text.replace("\n", "").isprintable()
    assert json.loads(text)["schema"] == 1


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema",), 2),
        (("libc", "kind"), "uclibc"),
        (("libc", "version"), 2),
        (("identity", "size_bytes"), "1"),
        (("identity", "size_bytes"), True),
        (("identity", "layers"), "abc"),
        (("identity", "layers"), [1]),
        (("config", "env"), {"A": 1}),
        (("account", "uid"), "0"),
        (("mpis",), [{}]),
        (("extra",), 1),
        (("system",), None),
    ],
)
def test_a_file_of_something_else_is_refused(path: tuple[str, ...], value: object) -> None:
    document = json.loads(to_json(sample()))
    place = document
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    with pytest.raises(UsageError, match="file of facts"):
        from_json(json.dumps(document))


def test_facts_are_written_to_a_file_and_read_from_it(tmp_path: Path) -> None:
    write_facts(tmp_path / "facts.json", to_json(sample()))
    assert read_facts(tmp_path / "facts.json") == sample()


def test_a_file_that_cannot_be_read_or_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        write_facts(tmp_path / "missing" / "facts.json", "")
    with pytest.raises(UsageError, match="cannot be read"):
        read_facts(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is no file of facts"):
        read_facts(tmp_path / "binary")


@pytest.mark.parametrize("text", ["", "[]", "1", "{}", "{", "[" * 100_000])
def test_a_text_that_is_no_facts_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="file of facts"):
        from_json(text)


def test_the_table_tells_what_matters() -> None:
    text = table_of(sample(), ("layers: COPY alone",))
    for expected in (
        "team/base:1",
        "20.0 GiB in 1 layers",
        "linux/amd64, programs for amd64",
        "glibc 2.36",
        "1000: uid 1000, no passwd entry",
        "/usr/bin/python3",
        "started by /usr/bin/mpirun",
        "UCX_TLS",
        "layers: COPY alone",
    ):
        assert expected in text
    assert "s3cr3t" not in text


def test_nothing_of_an_image_can_drive_the_terminal() -> None:
    text = table_of(hostile(), (HOSTILE,))
    assert text.replace("\n", "").isprintable()
    assert "[bold red]" in text


def test_a_text_for_a_terminal_is_one_line_of_bounded_length() -> None:
    assert shown("a\nb\x1b\ud800") == "a\\nb\\x1b\\ud800"
    assert shown("x" * 300) == "x" * 200 + "..."


def refusal_of(facts: ImageFacts, arch: str = "") -> str:
    with pytest.raises(PreflightError) as caught:
        refuse(facts, arch=arch)
    assert caught.value.exit_code == ExitCode.PREFLIGHT
    assert caught.value.remedy
    return str(caught.value)


def test_a_base_with_a_glibc_of_today_is_not_refused() -> None:
    refuse(sample(), arch="amd64")
    assert conclude(sample()).refused == ()
    assert conclude(sample()).plan


def test_musl_is_refused() -> None:
    assert "musl" in refusal_of(facts_of(musl()))
    assert conclude(facts_of(musl())).plan == ()


def test_an_image_without_a_libc_is_refused() -> None:
    assert "no glibc" in refusal_of(facts_of({"/bin/busybox": b"static"}))


@pytest.mark.parametrize("version", ["2.12", "2.4", "2.27"])
def test_a_glibc_that_is_too_old_is_refused(version: str) -> None:
    assert f"glibc is {version}, and 2.28 is needed" in refusal_of(facts_of(glibc(version)))


@pytest.mark.parametrize("version", ["2.28", "2.31", "2.100", "3.0"])
def test_a_glibc_that_is_new_enough_is_not_refused(version: str) -> None:
    assert refusals(facts_of(glibc(version))) == ()


def test_the_glibc_that_is_needed_can_be_another() -> None:
    assert refusals(facts_of(glibc("2.31")), minimum_glibc=(2, 34))


def test_a_glibc_without_a_loader_is_refused() -> None:
    files = {path: content for path, content in glibc("2.36").items() if "ld-linux" not in path}
    assert "no loader at /lib64/ld-linux-x86-64.so.2" in refusal_of(facts_of(files))


def test_a_config_that_lies_about_the_architecture_is_refused() -> None:
    identity = dataclasses.replace(IDENTITY, arch="arm64")
    assert "config says arm64, and its programs are compiled for amd64" in refusal_of(
        facts_of(glibc("2.36"), identity=identity)
    )


def test_another_architecture_than_asked_for_is_refused() -> None:
    assert "arm64 is asked for" in refusal_of(sample(), arch="arm64")


def test_an_architecture_without_builds_is_refused() -> None:
    identity = dataclasses.replace(IDENTITY, arch="s390x")
    assert "architecture is s390x" in refusal_of(facts_of({}, identity=identity))


def test_an_image_of_another_system_is_refused() -> None:
    assert "windows" in refusal_of(facts_of({}, identity=dataclasses.replace(IDENTITY, os="windows")))


def test_all_reasons_are_told_at_once() -> None:
    identity = dataclasses.replace(IDENTITY, arch="arm64")
    message = refusal_of(facts_of(glibc("2.12"), identity=identity))
    assert "config says arm64" in message
    assert "glibc is 2.12" in message


@pytest.mark.parametrize("version", ["", "x", "2.x", "2.\N{SUPERSCRIPT TWO}"])
def test_what_is_no_version_is_older_than_all(version: str) -> None:
    assert glibc_numbers(version) < (0, 1)
