"""What leader and members say to each other survives what else is on the line; each member has room."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from azcp_runtime.launch.crew import Crew
from azcp_runtime.launch.words import Line, Word, decode, member_socket, socket_path
from azcp_runtime.ssh.keys import find_keys

from tests.lab.ssh import make_keys


@pytest.mark.parametrize(
    "line", [Line(Word.BEAT), Line(Word.END, 6, "llama-2: it was killed"), Line(Word.FAILED, 5, "ä")]
)
def test_a_line_is_read_as_it_was_said(line: Line) -> None:
    assert decode(line.encode()) == line


def test_a_text_stays_on_its_line() -> None:
    assert decode(Line(Word.END, 1, "two\nlines\x1b[0m").encode()) == Line(Word.END, 1, "two lines [0m")
    assert len(Line(Word.END, 1, "x" * 5000).encode()) < 500


@pytest.mark.parametrize("text", [b"", b"Welcome to the node!\n", b"end\n", b"end six\n", b"\xff\xfe 0\n"])
def test_what_a_shell_greets_with_is_no_word(text: bytes) -> None:
    assert decode(text) is None


def test_a_long_state_folder_has_room_for_the_members_socket(tmp_path: Path) -> None:
    state = tmp_path / ("x" * 100) / ("y" * 100)
    state.mkdir(parents=True)
    (state / "member.sock").write_text("of an earlier start")
    with member_socket(state), socket_path(state) as path:
        assert len(path) < 108
        assert Path(path).is_socket()


@pytest.mark.parametrize(
    ("limits", "wanted"),
    [
        ((1024, 524288), (2256, 524288)),
        ((1024, 2000), (2000, 2000)),
        ((4096, 4096), None),
        ((1024, resource.RLIM_INFINITY), (2256, resource.RLIM_INFINITY)),
    ],
)
def test_there_is_a_descriptor_for_each_member(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], wanted: tuple[int, int] | None
) -> None:
    made: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _what: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _what, pair: made.append(pair))
    crew = Crew(2222, find_keys({}, None, str(make_keys(tmp_path / "keys"))), 1000)
    crew.end(0, "")
    assert made == ([wanted] if wanted else [])
