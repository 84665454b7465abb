"""Nodes that all run the same azcp-launch --every-node, as processes on addresses of the loopback."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.lab.ssh import free_port, make_keys
from tests.lab.waiting import wait_until

DEADLINE_S: Final = 30.0
SILENCE_S: Final = 2.0
_LAUNCH: Final = """
import sys
from functools import partial
from azcp_runtime import isolate
from azcp_runtime.launch import follow, lead, member, mpirun, network, tie

folder, own, silence_s = sys.argv[1:4]
sys.argv = ["azcp-launch", *sys.argv[4:]]
isolate.BIN, mpirun.MPIRUN, follow.LISTEN = folder, f"{folder}/mpirun", own
tie.SILENCE_S = member.SILENCE_S = float(silence_s)
mpirun.OWN_END_S = 0.5
tie.BEAT_S = tie.SILENCE_S / 8
lead.Network = partial(network.Network, is_local=own.__eq__, is_loopback=lambda address: False)
from azcp_runtime.entry import launch
launch()
"""
_COMMAND: Final = "#!{python}\nfrom azcp_runtime.entry import {name}\n{name}()\n"


@dataclass(frozen=True)
class Alike:
    """One of the nodes."""

    process: subprocess.Popen[bytes]
    log_file: Path

    @property
    def log(self) -> str:
        """What it has said so far, on either stream."""
        return self.log_file.read_text(encoding="utf-8")

    def says(self, pattern: str) -> bool:
        """Whether it has said something like that."""
        return re.search(pattern, self.log) is not None

    def wait_says(self, pattern: str) -> None:
        """Wait until it has."""
        wait_until(lambda: self.says(pattern), DEADLINE_S, f"{pattern} in\n{self.log}")

    def code(self, deadline_s: float = DEADLINE_S) -> int:
        """Its exit code, once it has ended."""
        try:
            return self.process.wait(deadline_s)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"it runs on:\n{self.log}") from error


@dataclass(frozen=True)
class Lab:
    """A job of some nodes, none of which runs yet.

    Args:
        folder: of this job.
        count: how many nodes.
        mpirun: a shell script in the place of mpirun.
        silence_s: after what time who says nothing is lost.
    """

    folder: Path
    count: int
    mpirun: str
    silence_s: float = 60.0
    port: int = field(default_factory=free_port)

    @property
    def hosts(self) -> str:
        """All of them."""
        return f"127.0.0.[2-{self.count + 1}]"

    def host(self, index: int) -> str:
        """One of them."""
        return f"127.0.0.{index + 2}"

    @property
    def keys(self) -> Path:
        """The job's."""
        return self.folder / "keys"

    @property
    def source(self) -> Path:
        """What is distributed."""
        return self.folder / "source"

    def prepare(self) -> None:
        """Keys, and the commands that a node starts."""
        make_keys(self.keys)
        self.source.mkdir()
        for name in ("tether", "step", "ssh", "distribute"):
            _write(self.folder / f"bin/azcp-{name}", _COMMAND.format(python=sys.executable, name=name))
        _write(self.folder / "bin/mpirun", f"#!/bin/sh\n{self.mpirun}\n")

    @contextmanager
    def node(
        self, index: int, *words: str, env: Mapping[str, str] | None = None, keys: Path | None = None
    ) -> Iterator[Alike]:
        """One node, started; killed with its children at the end of the with block."""
        log_file = self.folder / f"log{index}"
        own = {
            "PATH": os.environ["PATH"],
            "AZCP_STATE_DIR": str(self.folder / f"state{index}"),
            "AZCP_SSH_KEYS": str(keys or self.keys),
            "AZCP_INDEX": str(index),
            "LAB_NODE": str(index),
        }
        argv = self._argv(index, words)
        with (
            log_file.open("ab") as log,
            subprocess.Popen(
                argv, env={**own, **(env or {})}, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            ) as process,
        ):
            try:
                yield Alike(process, log_file)
            finally:
                process.send_signal(signal.SIGCONT)
                process.kill()

    @contextmanager
    def nodes(self, *words: str) -> Iterator[Sequence[Alike]]:
        """All of them."""
        with ExitStack() as stack:
            yield [stack.enter_context(self.node(index, *words)) for index in range(self.count)]

    def _argv(self, index: int, words: Sequence[str]) -> list[str]:
        cut = list(words).index("--") if "--" in words else len(words)
        ours = [f"--hosts={self.hosts}", "--every-node", f"--port={self.port}"]
        python = [sys.executable, "-c", _LAUNCH, str(self.folder / "bin"), self.host(index)]
        dest = self.folder / f"dest{index}"
        job = [str(self.source), str(dest), *ours, *words[:cut], *words[cut:]]
        return [*python, str(self.silence_s), *job]


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
