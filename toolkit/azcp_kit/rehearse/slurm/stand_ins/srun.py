"""srun's stand-in: the tasks of a step on their nodes, its own standard input for each, and how they end."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final

from azcp_kit.rehearse.slurm.stand_ins.request import RefusedError, Step, read_step
from azcp_kit.rehearse.slurm.stand_ins.variables import task_variables
from azcp_kit.rehearse.slurm.stand_ins.wire import (
    ENDED,
    ERROR,
    FOLDER,
    INPUT,
    OUTPUT,
    SIGNAL,
    TASK,
    Job,
    Line,
    read_job,
)

_PIECE_BYTES: Final = 1 << 16
_CONNECT_S: Final = 20.0
_KILL_WAIT_S: Final = 30.0
_PROGRAMS: Final = ("azcp-launch", "azcp-distribute")
_NEVER: Final = float("inf")
_LONGEST_WAIT_S: Final = 3600.0
LOST: Final = 143


@dataclass
class _Running:
    """A step under way."""

    step: Step
    lines: list[Line]
    ends: SimpleQueue[tuple[int, int]] = field(default_factory=SimpleQueue)

    def signal_all(self, number: int) -> None:
        for line in self.lines:
            try:
                line.send(SIGNAL, str(number).encode())
            except OSError:
                # That task has ended already.
                continue


def main(argv: Sequence[str]) -> int:
    """Run a step to its end; the highest exit code of its tasks, as srun does."""
    folder = Path(os.environ[FOLDER])
    job = read_job(folder)
    try:
        step = read_step(argv, os.environ, job.nodes)
    except RefusedError as error:
        print(error, file=sys.stderr)
        return 1
    words = _words_to_run(job, step, folder)
    if not words:
        print("rehearsal: left out, for it comes after the distribution:", *step.words[:1], file=sys.stderr)
        return 0
    number = _number(folder)
    began = time.time()
    code = _run(job, step, number, words)
    record = {"words": list(step.words), "tasks": len(step.tasks), "code": code}
    record |= {"began": began, "took_s": time.time() - began}
    (folder / "steps" / str(number) / "end.json").write_text(json.dumps(record), encoding="utf-8")
    if code == 0 and _distributes(step.words):
        (folder / "distributed").touch()
    return code


def _distributes(words: Sequence[str]) -> bool:
    return any(word.rpartition("/")[2] in _PROGRAMS for word in words)


def _words_to_run(job: Job, step: Step, folder: Path) -> tuple[str, ...]:
    """The step's words; those for after the distribution are left out where that is asked for."""
    if not job.until_distributed:
        return step.words
    if not _distributes(step.words):
        return () if (folder / "distributed").exists() else step.words
    is_launch = any(word.rpartition("/")[2] == "azcp-launch" for word in step.words)
    return step.words[: step.words.index("--")] if is_launch and "--" in step.words else step.words


def _number(folder: Path) -> int:
    number = 0
    while True:
        try:
            (folder / "steps" / str(number)).mkdir(parents=True)
        except FileExistsError:
            number += 1
        else:
            return number


def _run(job: Job, step: Step, number: int, words: Sequence[str]) -> int:
    addresses = dict(zip(job.nodes, job.addresses, strict=True))
    running = _Running(step, [])
    try:
        for node in step.tasks:
            host, _, port = addresses[step.nodes[node]].rpartition(":")
            connection = socket.create_connection((host, int(port)), _CONNECT_S)
            connection.settimeout(None)
            running.lines.append(Line(connection))
    except OSError as error:
        print(f"srun: error: Unable to contact a node: {error}", file=sys.stderr)
        return 1
    for rank, line in enumerate(running.lines):
        line.tell(TASK, _order(job, step, number, rank, words))
        threading.Thread(target=_listen, args=(running, rank), daemon=True).start()
    for received in (signal.SIGTERM, signal.SIGINT):
        signal.signal(received, lambda which, _: running.signal_all(which))
    (Path(os.environ[FOLDER]) / "steps" / str(number) / "pid").write_text(str(os.getpid()), encoding="ascii")
    threading.Thread(target=_feed, args=(running,), daemon=True).start()
    return _follow(running)


def _order(job: Job, step: Step, number: int, rank: int, words: Sequence[str]) -> dict[str, Any]:
    env = task_variables(job, step, number, rank, os.environ)
    cwd = step.options.get("chdir", os.getcwd())
    return {"token": job.token, "argv": list(words), "env": env, "cwd": cwd}


def _feed(running: _Running) -> None:
    """Standard input, for every task."""
    lines = list(running.lines)
    more = True
    while more:
        try:
            piece = os.read(0, _PIECE_BYTES)
        except OSError:
            piece = b""
        more = bool(piece)
        for line in list(lines):
            try:
                line.send(INPUT, piece)
            except OSError:
                lines.remove(line)


def _listen(running: _Running, rank: int) -> None:
    label = f"{rank}: ".encode() if "label" in running.step.options else b""
    while frame := running.lines[rank].receive():
        kind, content = frame
        if kind == ENDED:
            running.ends.put((rank, int(json.loads(content)["code"])))
            return
        stream = {OUTPUT: sys.stdout.buffer, ERROR: sys.stderr.buffer}[kind]
        stream.write(
            b"".join(label + part for part in content.splitlines(keepends=True)) if label else content
        )
        stream.flush()
    running.ends.put((rank, LOST))


def _follow(running: _Running) -> int:
    """Wait for all tasks, and end those that may not go on alone; the highest code."""
    step = running.step
    codes: dict[int, int] = {}
    end_at = _NEVER
    how = signal.SIGTERM
    while len(codes) < len(step.tasks):
        left_s = end_at - time.monotonic()
        try:
            rank, code = running.ends.get(timeout=max(0.0, min(left_s, _LONGEST_WAIT_S)))
        except Empty:
            if end_at <= time.monotonic():
                running.signal_all(how)
                end_at, how = time.monotonic() + _KILL_WAIT_S, signal.SIGKILL
            continue
        codes[rank] = code
        if code:
            node = step.nodes[step.tasks[rank]]
            print(f"srun: error: {node}: task {rank}: Exited with exit code {code}", file=sys.stderr)
        if how is signal.SIGTERM and code and step.kills_on_bad_exit:
            end_at = time.monotonic()
        elif end_at == _NEVER and step.wait_s is not None:
            end_at = time.monotonic() + step.wait_s
    return max(codes.values())
