"""Progress tells of all that passes through rank 0, in one unit, and of nothing that has nothing to do."""

from __future__ import annotations

import pytest
from azcp_runtime.contract import ENV_PROGRESS
from azcp_runtime.progress import Moved, choose_display, done_bytes

MIB = 1 << 20
LINES = {ENV_PROGRESS: "lines"}
LIVE = {ENV_PROGRESS: "live"}


def shown(
    capsys: pytest.CaptureFixture[str], goal: Moved, moved: Moved, env: dict[str, str], rails: int = 1
) -> str:
    """What standard error has after one second of a pass."""
    display = choose_display(goal, env, rails)
    assert display
    display.show(moved, 1.0)
    display.close()
    return capsys.readouterr().err


def test_a_node_that_misses_nothing_tells_how_much_it_has_passed_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    goal = Moved(30 * MIB, 10 * MIB, 0)
    line = shown(capsys, goal, Moved(10 * MIB, 10 * MIB, 0), LINES)
    assert line.startswith("[progress] 50.0% 20.0 MiB of 40.0 MiB, fetch ")
    assert "write" not in line
    assert line.endswith(", 1s left\n")


def test_one_node_has_nothing_to_receive(capsys: pytest.CaptureFixture[str]) -> None:
    goal, moved = Moved(4 * MIB, 0, 4 * MIB), Moved(4 * MIB, 0, 2 * MIB)
    assert "receive" not in shown(capsys, goal, moved, LINES)
    live = shown(capsys, goal, moved, LIVE)
    assert "on disk" in live
    assert "received" not in live


def test_a_rail_says_that_it_is_one_of_several(capsys: pytest.CaptureFixture[str]) -> None:
    goal = Moved(40 * MIB, 0, 40 * MIB)
    assert "100.0% 40.0 MiB of 40.0 MiB on rail 0 of 3, " in shown(capsys, goal, goal, LINES, rails=3)


def test_the_bars_have_the_units_of_the_lines(capsys: pytest.CaptureFixture[str]) -> None:
    goal = Moved(4 * MIB, 4 * MIB, 8 * MIB)
    live = shown(capsys, goal, goal, LIVE)
    assert "67.11 Mb/s" in live  # of a pass so short that it is shown once
    assert "B/s" not in live


@pytest.mark.parametrize("env", [LINES, LIVE])
def test_a_run_that_has_nothing_to_move_shows_nothing(env: dict[str, str]) -> None:
    assert choose_display(Moved(0, 0, 0), env) is None


@pytest.mark.parametrize(
    ("moved", "done"),
    [
        (Moved(0, 0, 0), 0),
        (Moved(5, 3, 2), 6),  # 4 of the 10 are not written yet
        (Moved(5, 3, 6), 8),
        (Moved(5, 3, 9), 8),  # a direct write ends at a whole sector
        (Moved(6, 4, 5), 9),
        (Moved(6, 4, 6), 10),
    ],
)
def test_bytes_are_done_when_they_have_passed_and_what_is_missing_here_is_written(
    moved: Moved, done: int
) -> None:
    assert done_bytes(moved, Moved(6, 4, 6)) == done
