"""What a test does with a cluster: runs commands, submits jobs and waits for what becomes of them."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.lab.slurm import conf, wires
from tests.lab.slurm.job import ENDED, JobRecord, parse
from tests.lab.slurm.layout import NVME, Layout
from tests.lab.slurm.machine import PATH
from tests.lab.slurm.site import Site, powered
from tests.lab.waiting import wait_until

RUN_S: Final = 60.0
READY_S: Final = 30.0
JOB_S: Final = 60.0
_TIMED_OUT: Final = (124, 137)
_TAIL: Final = 3000


@dataclass(frozen=True, slots=True)
class Cluster:
    """One that runs. All machines see `shared`, at the same path: their home and working directory."""

    site: Site

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the nodes, which are their host names too."""
        return self.site.nodes

    @property
    def shared(self) -> Path:
        """What stands for the file system of the site."""
        return self.site.layout.shared

    @property
    def host_address(self) -> str:
        """Where the machines reach what listens on this one, such as a Blob endpoint."""
        return str(wires.host_address(self.site.network))

    def nvme(self, name: str) -> Path:
        """What is NVME on that node; it outlives the node, as /tmp does."""
        return self.site.layout.own(name, NVME)

    def tmp(self, name: str) -> Path:
        """What is /tmp on that machine."""
        return self.site.layout.own(name, "/tmp")  # noqa: S108 - by its name there

    def run(
        self,
        *argv: str,
        on: str = conf.CONTROLLER,
        env: Mapping[str, str] | None = None,
        text: str = "",
        timeout_s: float = RUN_S,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on a machine, to its end.

        Args:
            argv: of the command.
            on: the machine.
            env: beside PATH, HOME and LANG; nothing else is handed on.
            text: its standard input.
            timeout_s: a safety net.

        Raises:
            TimeoutError: it ran longer, and was ended.
        """
        # Inside, as whoever ends nsenter leaves the command itself running.
        bounded = ["timeout", "--kill-after=5", str(timeout_s), "env", f"--chdir={self.shared}", *argv]
        environment = {"PATH": PATH, "HOME": str(self.shared), "LANG": "C.UTF-8", **(env or {})}
        started = time.monotonic()
        ended = subprocess.run(
            self.site.running[on].enter(bounded),
            input=text,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        # srun has these codes too, from a task.
        if ended.returncode in _TIMED_OUT and time.monotonic() - started >= timeout_s:
            raise TimeoutError(f"{argv} ran longer than {timeout_s} s\n{ended.stdout}\n{ended.stderr}")
        return ended

    def said(self, *argv: str, env: Mapping[str, str] | None = None, text: str = "") -> str:
        """What a command that must succeed prints on the controller."""
        ended = self.run(*argv, env=env, text=text)
        assert ended.returncode == 0, f"{argv}: {ended.returncode} {ended.stderr}\n{self.logs()}"
        return ended.stdout

    def sbatch(self, script: Path | str, *options: str, env: Mapping[str, str] | None = None) -> int:
        """Submit a script, which is a file or its text; gives the job's number."""
        argv = ["sbatch", "--parsable", *options]
        if isinstance(script, Path):
            return int(self.said(*argv, str(script), env=env))
        return int(self.said(*argv, env=env, text=script))

    def job(self, number: int) -> JobRecord:
        """The job as it is now."""
        return parse(self.said("scontrol", "show", "job", str(number)))

    def wait(self, number: int, *states: str, deadline_s: float = JOB_S) -> JobRecord:
        """Wait until the job is in one of these states; without any, until it has ended.

        Raises:
            TimeoutError: it is not in time.
        """
        record = self.job(number)

        def settled() -> bool:
            nonlocal record
            record = self.job(number)
            return record.state in (*states, *ENDED)

        try:
            wait_until(settled, deadline_s, f"job {number} is {states or 'at its end'}")
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self._about(record)}") from None
        assert record.state in (states or ENDED), self._about(record)
        return record

    def output(self, number: int) -> str:
        """What the job has written to its standard output below `shared`; empty before it starts."""
        path = self.job(number).output_file
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def start_now(self, number: int) -> None:
        """Let a requeued job start at once, not when its old credential has expired."""
        self.said("scontrol", "update", f"JobId={number}", "StartTime=now")

    def node_states(self) -> dict[str, str]:
        """Each node's, such as idle, mixed, allocated or down*."""
        lines = self.said("sinfo", "--noheader", "--Node", "--format=%N %T").splitlines()
        return dict(line.split(maxsplit=1) for line in lines)

    def wait_nodes(self, *names: str, state: str = "idle", deadline_s: float = READY_S) -> None:
        """Wait until these nodes, or all, are in that state.

        Raises:
            TimeoutError: they are not in time.
        """

        def settled() -> bool:
            now = self.node_states()
            return {now[name] for name in names or self.nodes} == {state}

        try:
            wait_until(settled, deadline_s, f"{names or 'all nodes'} {state}")
        except TimeoutError as error:
            raise TimeoutError(f"{error}: {self.node_states()}\n{self.logs()}") from None

    def kill_node(self, name: str) -> None:
        """Power off: no process of it gets to say anything, and slurmctld finds out by itself."""
        self.site.kill_node(name)

    def start_node(self, name: str) -> None:
        """Power on again, and wait until it takes jobs."""
        self.site.start_node(name)
        self.wait_nodes(name)

    def logs(self) -> str:
        """The end of what each machine's services have said."""
        ends = (
            (name, self.site.layout.log(name).read_text(errors="replace")) for name in self.site.addresses()
        )
        return "\n".join(f"--- {name}\n{text[-_TAIL:]}" for name, text in ends)

    def _about(self, record: JobRecord) -> str:
        return f"{record}\n{self.output(record.number)[-_TAIL:]}\n{self.logs()}"


@contextmanager
def slurm_cluster(
    folder: Path, nodes: int = 4, *, gpus: int = 8, cpus: int = 8, has_pmix: bool = True, **parameters: str
) -> Iterator[Cluster]:
    """A cluster whose nodes are idle, for the length of a with block.

    Args:
        folder: is made, and does not outlive the block.
        nodes: how many; their names are node1 and so on.
        gpus: of each node, in name only.
        cpus: of each node, in name only.
        has_pmix: whether srun can use the pmix that it lists.
        parameters: of slurm.conf, such as MpiDefault="pmi2".
    """
    names = tuple(f"node{index + 1}" for index in range(nodes))
    site = Site(Layout(folder.absolute()), wires.free_network(), names)
    site.layout.write(site.addresses(), cpus, gpus, parameters, has_pmix)
    with powered(site):
        cluster = Cluster(site)
        cluster.wait_nodes()
        yield cluster
