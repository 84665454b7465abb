"""One command on many nodes: the first failure ends the others, and signals reach all."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from concurrent.futures import Future
from pathlib import Path

from azcp_runtime.contract import PreflightError
from azcp_runtime.launch.fanout import Running, Task, run_everywhere
from azcp_runtime.launch.lines import Lines
from azcp_runtime.launch.peers import Loss
from azcp_runtime.launch.steps import start_here

from tests.lab.waiting import wait_until

DEADLINE_S = 20.0


def task(host: str, script: str) -> Task:
    """A shell's script as if it ran on a node of that name."""

    async def start() -> Running:
        return await start_here(["/bin/sh", "-c", script])

    return Task(host, start)


def test_all_nodes_that_succeed_are_a_success() -> None:
    assert run_everywhere([task("a", "exit 0"), task("b", "exit 0")], print) == 0


def test_the_first_failure_is_named_and_ends_the_others() -> None:
    said: list[str] = []
    code = run_everywhere([task("a", "exec sleep 60"), task("b", "sleep 0.2; exit 7")], said.append)
    assert code == 7
    assert said == ["b: the command ended with 7 and the others are asked to end"]


def test_who_does_not_end_when_asked_is_ended() -> None:
    stubborn = task("a", "trap '' TERM; while :; do sleep 0.1; done")
    assert run_everywhere([stubborn, task("b", "sleep 0.2; exit 3")], lambda _text: None, grace_s=0.3) == 3


def test_a_node_on_which_nothing_starts_is_a_failure_of_the_preflight() -> None:
    async def refuse() -> Running:
        raise PreflightError("b cannot be reached")

    said: list[str] = []
    assert run_everywhere([task("a", "exec sleep 60"), Task("b", refuse)], said.append) == 8
    assert "b: b cannot be reached" in said[0]


def test_a_connection_that_is_lost_is_told_as_such() -> None:
    class Lost:
        async def wait(self) -> int:
            await asyncio.sleep(0)
            raise ConnectionResetError("the connection is lost")

        def send(self, number: signal.Signals) -> None:
            """Nobody is there."""

        def drop(self) -> None:
            """The same."""

    async def start() -> Running:
        return Lost()

    said: list[str] = []
    assert run_everywhere([Task("b", start)], said.append) == 255
    assert said == ["b: the connection is lost"]


def test_a_node_that_is_found_lost_ends_the_others_and_is_not_waited_for(tmp_path: Path) -> None:
    lost: Future[Loss] = Future()
    ready = tmp_path / "ready"

    def lose() -> None:
        wait_until(ready.exists, DEADLINE_S, "the command runs")
        lost.set_result(Loss("b", "no sign of life for 40 s", 6))

    finder = threading.Thread(target=lose)
    finder.start()
    said: list[str] = []
    first = tmp_path / "first"
    other = task("a", f"touch {first}; exec sleep 60")
    wait = f"while [ ! -e {first} ]; do sleep 0.1; done; sleep 0.2; touch {ready}"
    deaf = task("b", f"trap '' TERM; {wait}; while :; do sleep 0.1; done")
    assert run_everywhere([other, deaf], said.append, lost) == 6
    finder.join()
    assert said == ["b: no sign of life for 40 s and the others are asked to end"]


def test_a_signal_reaches_the_command(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    script = f"trap 'exit 9' USR1; touch {ready}; while :; do sleep 0.05; done"

    def signal_when_ready() -> None:
        wait_until(ready.exists, DEADLINE_S, "the command runs")
        os.kill(os.getpid(), signal.SIGUSR1)

    sender = threading.Thread(target=signal_when_ready)
    sender.start()
    assert run_everywhere([task("a", script)], lambda _text: None) == 9
    sender.join()


def test_a_second_wish_to_stop_is_carried_out(tmp_path: Path) -> None:
    ready, once = tmp_path / "ready", tmp_path / "once"
    script = f"trap 'touch {once}' TERM; touch {ready}; while :; do sleep 0.05; done"

    def stop_twice() -> None:
        for what in (ready, once):
            wait_until(what.exists, DEADLINE_S, "the command runs, and has been told once")
            os.kill(os.getpid(), signal.SIGTERM)

    sender = threading.Thread(target=stop_twice)
    sender.start()
    said: list[str] = []
    assert run_everywhere([task("a", script)], said.append) == 137
    sender.join()
    assert said == [
        "stopped again: what still runs is ended now",
        "a: the command ended with 137, as a signal asked it to",
    ]


def test_output_comes_in_whole_lines() -> None:
    reading, writing = os.pipe()
    lines = Lines(writing)
    lines.feed(b"one\ntw")
    assert os.read(reading, 100) == b"one\n"
    lines.feed(b"o\n50%\r6")
    assert os.read(reading, 100) == b"two\n50%\r"
    lines.end()
    assert os.read(reading, 100) == b"6"
    os.close(reading)
    lines.feed(b"nobody reads this\n")
    os.close(writing)
