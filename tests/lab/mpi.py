"""azcp-distribute under this environment's mpirun, or alone: run to its end, or started to be killed."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from azcp_runtime.contract import ENV_SIMULATE_NODES

from tests.lab.processes import command_line, kill, processes_with
from tests.lab.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MPIRUN: Final = Path(sys.prefix, "bin", "mpirun")
DISTRIBUTE: Final = Path(sys.prefix, "bin", "azcp-distribute")
DEADLINE_S: Final = 120.0
GONE_S: Final = 15.0
JOB_VARIABLE: Final = "AZCP_LAB_JOB"
RANK_VARIABLE: Final = "OMPI_COMM_WORLD_RANK"
# What the machine's own environment says must not decide a test.
FOREIGN: Final = ("AZCP_", "AZURE_", "OMPI_", "PMIX_", "SLURM_")


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    code: int
    stdout: str
    stderr: str
    seconds: float

    @property
    def text(self) -> str:
        """All that anybody could have seen of it."""
        return self.stdout + self.stderr

    def expect(self, code: int) -> Outcome:
        """Itself, once its exit code is the expected one."""
        assert self.code == code, f"exit code {self.code}, not {code}\n{self.stdout}\n{self.stderr[-6000:]}"
        return self


@dataclass(frozen=True)
class Job:
    """A run in progress; all of its processes carry its token in their environment."""

    launcher: subprocess.Popen[bytes]
    scratch: Path
    token: str
    started: float

    def ranks(self) -> dict[int, int]:
        """The process id of each rank that runs now."""
        numbered = {
            environ.get(RANK_VARIABLE, ""): pid for pid, environ in processes_with(JOB_VARIABLE, self.token)
        }
        return {int(rank): pid for rank, pid in numbered.items() if rank}

    def processes(self) -> list[int]:
        """Every process of the job that runs now, the launcher too."""
        return [pid for pid, _ in processes_with(JOB_VARIABLE, self.token)]

    def command_lines(self) -> str:
        """What ps would show of the job now."""
        return "\n".join(command_line(pid) for pid in self.processes())

    def kill_rank(self, rank: int) -> None:
        """SIGKILL to one rank; nothing if it has ended."""
        kill(self.ranks().get(rank))

    def kill_launcher(self) -> None:
        """SIGKILL to mpirun itself."""
        kill(self.launcher.pid)

    def terminate(self) -> None:
        """SIGTERM to every rank, or to the plain process; mpirun would answer it with a code of its own."""
        for pid in self.ranks().values() or [self.launcher.pid]:
            kill(pid, signal.SIGTERM)

    def ended(self) -> bool:
        """Whether the launcher has ended."""
        return self.launcher.poll() is not None

    def wait(self, deadline_s: float = DEADLINE_S) -> Outcome:
        """The outcome, as soon as the launcher has ended.

        Raises:
            TimeoutError: it has not; the job is killed first.
        """
        try:
            code = self.launcher.wait(deadline_s)
        except subprocess.TimeoutExpired:
            self.kill_all()
            raise TimeoutError(
                f"still running after {deadline_s:.0f} s\n{self._output('stderr')[-6000:]}"
            ) from None
        seconds = time.monotonic() - self.started
        return Outcome(code, self._output("stdout"), self._output("stderr"), seconds)

    def wait_until_gone(self, deadline_s: float = GONE_S) -> None:
        """Return once no process of the job is left."""
        wait_until(lambda: not self.processes(), deadline_s, "every process of the job is gone")

    def kill_all(self) -> None:
        """End whatever is left."""
        for pid in self.processes():
            kill(pid)
        self.launcher.wait()

    def output(self) -> str:
        """What it has written so far, on both streams."""
        return self._output("stdout") + self._output("stderr")

    def _output(self, stream: str) -> str:
        return (self.scratch / stream).read_text(encoding="utf-8", errors="backslashreplace")


def distribute(
    source: str,
    dest: Path,
    *options: str,
    ranks: int | None = None,
    nodes: int | None = None,
    env: Mapping[str, str] | None = None,
    under: Sequence[str] = (),
    deadline_s: float = DEADLINE_S,
) -> Outcome:
    """Run it to its end.

    Args:
        source: URL or directory.
        dest: node i writes to dest/node{i} where `nodes` are simulated.
        options: of azcp-distribute.
        ranks: under mpirun; None is a plain process.
        nodes: how many nodes the ranks count as; None leaves the machine one node.
        env: beside what the job needs itself.
        under: a command that runs the one it is given, such as prlimit.
        deadline_s: a safety net: the job is killed and the test fails.
    """
    with started(source, dest, *options, ranks=ranks, nodes=nodes, env=env, under=under) as job:
        return job.wait(deadline_s)


@contextmanager
def started(
    source: str,
    dest: Path,
    *options: str,
    ranks: int | None = None,
    nodes: int | None = None,
    env: Mapping[str, str] | None = None,
    under: Sequence[str] = (),
) -> Iterator[Job]:
    """A running job, arguments as for `distribute`; what is left of it ends with the block."""
    simulate = {} if nodes is None else {ENV_SIMULATE_NODES: str(nodes)}
    with _scratch() as scratch:
        command = [*under, *_launcher(ranks, scratch), str(DISTRIBUTE), source, str(dest), *options]
        with _running(command, simulate | dict(env or {}), scratch) as job:
            yield job


@contextmanager
def launched(launcher: Sequence[str], source: str, dest: Path, *options: str) -> Iterator[Job]:
    """A running job under a launcher of the caller's own."""
    with (
        _scratch() as scratch,
        _running([*launcher, str(DISTRIBUTE), source, str(dest), *options], {}, scratch) as job,
    ):
        yield job


@contextmanager
def _scratch() -> Iterator[Path]:
    # Shared memory segments of killed ranks stay for ever in /dev/shm: here they go with the folder.
    with tempfile.TemporaryDirectory(prefix="azcp-lab-", dir="/dev/shm") as folder:
        yield Path(folder)


@contextmanager
def _running(command: list[str], env: Mapping[str, str], scratch: Path) -> Iterator[Job]:
    token = secrets.token_hex(8)
    job = _start(command, _clean_environment() | {JOB_VARIABLE: token} | dict(env), scratch, token)
    try:
        yield job
    finally:
        job.kill_all()


def _start(command: list[str], environment: dict[str, str], scratch: Path, token: str) -> Job:
    with (scratch / "stdout").open("wb") as stdout, (scratch / "stderr").open("wb") as stderr:
        launcher = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
    return Job(launcher, scratch, token, time.monotonic())


def _launcher(ranks: int | None, scratch: Path) -> list[str]:
    if ranks is None:
        return []
    settings = {
        # More ranks than cores: a rank that spins takes the core from one that works.
        "mpi_yield_when_idle": "1",
        "orte_tmpdir_base": str(scratch),
        "btl_vader_backing_directory": str(scratch),
        # Containers often deny it, and the fallback then talks about it on stderr.
        "btl_vader_single_copy_mechanism": "none",
    }
    mca = [word for name, value in settings.items() for word in ("--mca", name, value)]
    return [str(MPIRUN), "-n", str(ranks), "--oversubscribe", "--bind-to", "none", *mca]


def _clean_environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return kept | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
