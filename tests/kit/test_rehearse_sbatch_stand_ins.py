"""Stand-ins for Slurm's commands: a real batch script on nodes that are threads of this process."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Final

import azcp_kit
import pytest
from azcp_kit.rehearse.account import Emulator
from azcp_kit.rehearse.slurm.conclude import read_steps
from azcp_kit.rehearse.slurm.order import run_order, wait_until_up
from azcp_kit.rehearse.slurm.payload import files_in, programs, shared_files
from azcp_kit.rehearse.slurm.said import Said
from azcp_kit.rehearse.slurm.stand_ins.node import serve
from azcp_kit.rehearse.slurm.stand_ins.others import entered
from azcp_kit.rehearse.slurm.stand_ins.request import RefusedError, read_step, split
from azcp_kit.rehearse.slurm.stand_ins.variables import exported, script_variables
from azcp_kit.rehearse.slurm.stand_ins.wire import Job, Line
from azcp_runtime.contract import PreflightError

from tests.lab.waiting import wait_until

NODES: Final = ("node1", "node2", "node3")
DEADLINE_S: Final = 30.0
SHOW: Final = "import os, sys; print(os.environ['SLURM_PROCID'], os.environ['SLURM_NODEID'], *sys.argv[1:])"


@dataclass(frozen=True)
class Site:
    """Nodes that take tasks, and the folder with the programs."""

    folder: Path
    job: Job

    def run(self, text: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """A batch script, to its end."""
        env = {
            **script_variables(self.job, 1, str(self.folder)),
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "PYTHON": sys.executable,
        }
        return subprocess.run(
            ["bash", "-c", text],
            input=stdin,
            env=env,
            cwd=self.folder,
            capture_output=True,
            check=False,
            timeout=DEADLINE_S,
        )

    def lines(self, text: str, stdin: bytes = b"") -> list[str]:
        """What a script that ends well prints, sorted: tasks print in any order."""
        ended = self.run(text, stdin)
        assert ended.returncode == 0, ended.stderr
        return sorted(ended.stdout.decode().splitlines())

    def tell(self, job: Job) -> None:
        """Have the programs know the job so."""
        (self.folder / "job.json").write_text(json.dumps(asdict(job)), encoding="utf-8")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in NODES]
    addresses = tuple(f"127.0.0.1:{server.getsockname()[1]}" for server in servers)
    job = Job(1234, "llama", NODES, addresses, "token")
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib").symlink_to(Path(azcp_kit.__file__).parents[1])
    for name, text in programs(sys.executable, str(tmp_path)):
        path = tmp_path / "bin" / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    found = Site(tmp_path, job)
    found.tell(job)
    threads = [threading.Thread(target=serve, args=(server, job)) for server in servers]
    for thread in threads:
        thread.start()
    yield found
    for server in servers:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
    for thread in threads:
        thread.join()


def test_each_node_runs_the_words_as_they_are(site: Site) -> None:
    told = site.lines(f"""srun --export=ALL "$PYTHON" -c "{SHOW}" 'a  b' '$x' '"' """)
    assert told == [f'{rank} {rank} a  b $x "' for rank in range(3)]


def test_several_tasks_lie_on_each_node_by_blocks(site: Site) -> None:
    told = site.lines(f'srun -N 2 --ntasks=4 "$PYTHON" -c "{SHOW}"')
    assert told == ["0 0", "1 0", "2 1", "3 1"]


def test_every_task_gets_the_whole_standard_input(site: Site) -> None:
    told = site.lines("srun sha256sum", os.urandom(300_000))
    assert len(told) == 3
    assert len(set(told)) == 1
    assert site.lines("srun cat </dev/null") == []


def test_a_task_knows_its_step(site: Site) -> None:
    names = "SLURM_STEP_NODELIST SLURM_STEP_NUM_TASKS SLURM_NNODES SLURM_STEP_TASKS_PER_NODE SLURMD_NODENAME"
    told = site.lines(f"srun --nodes=2 printenv {names}")
    alike = ["node1,node2", "2", "2", "1(x2)"]
    assert told == sorted([*alike, "node1", *alike, "node2"])


def test_the_highest_code_is_that_of_the_step(site: Site) -> None:
    ended = site.run("srun sh -c 'exit $((SLURM_PROCID + 3))'")
    assert ended.returncode == 5
    assert b"srun: error: node3: task 2: Exited with exit code 5" in ended.stderr


def test_a_task_that_fails_ends_the_others_where_that_is_asked_for(site: Site) -> None:
    ended = site.run("srun --kill-on-bad-exit=1 sh -c 'test $SLURM_PROCID != 1 || exit 7; exec sleep 1000'")
    assert ended.returncode == 143
    assert b"task 1: Exited with exit code 7" in ended.stderr


def test_the_others_are_not_waited_for_longer_than_is_asked_for(site: Site) -> None:
    ended = site.run("srun --wait=1 sh -c 'test $SLURM_PROCID = 1 || exec sleep 1000'")
    assert ended.returncode == 143


def test_a_program_that_is_not_there_is_told(site: Site) -> None:
    ended = site.run("srun --nodes=1 /no/such/program")
    assert ended.returncode == 2
    assert b"execve(): /no/such/program: No such file or directory" in ended.stderr


def test_scancel_reaches_the_steps(site: Site) -> None:
    ended = site.run(
        """
        srun --nodes=2 sh -c 'trap "exit 9" TERM; echo up; while :; do sleep 0.05; done' >told &
        until [ "$(grep -c up told)" = 2 ]; do sleep 0.05; done
        scancel --quiet --signal=TERM "$SLURM_JOB_ID"
        wait $!
        """
    )
    assert ended.returncode == 9, ended.stderr


def test_what_a_task_leaves_behind_ends_with_it(site: Site) -> None:
    site.run("srun --nodes=1 sh -c 'sleep 1000 & echo $! >pid'")
    pid = (site.folder / "pid").read_text(encoding="ascii").strip()
    stat = Path("/proc", pid, "stat")
    # Nobody may be there to take its code.
    wait_until(lambda: not stat.exists() or ") Z " in stat.read_text(), DEADLINE_S, "it has ended")


def test_a_node_takes_nothing_without_the_token(site: Site) -> None:
    site.tell(replace(site.job, token="other"))  # noqa: S106 - of nobody
    ended = site.run("srun --nodes=1 touch done")
    assert ended.returncode == 143
    assert not (site.folder / "done").exists()


def test_no_plugin_of_mpi_is_made_up(site: Site) -> None:
    ended = site.run("srun --mpi=pmix true")
    assert ended.returncode == 1
    assert b"mpi/pmix" in ended.stderr


def test_more_nodes_than_there_are_cannot_be_had(site: Site) -> None:
    assert b"More nodes requested" in site.run("srun --nodes=4 true").stderr


def test_what_comes_after_the_distribution_is_left_out_where_that_is_asked_for(site: Site) -> None:
    site.tell(replace(site.job, until_distributed=True))
    launch = site.folder / "bin" / "azcp-launch"
    launch.write_text('#!/bin/sh\necho launched "$@"\n', encoding="utf-8")
    launch.chmod(0o755)
    told = site.lines(
        "srun -N1 echo before; srun -N1 azcp-launch a b -- train; srun -N1 echo after; srun -N1 azcp-launch c"
    )
    assert told == ["before", "launched a b", "launched c"]


def test_each_step_is_written_down(site: Site) -> None:
    site.run("srun true; srun --nodes=1 sh -c 'exit 4'")
    records = {
        int(path.parent.name): json.loads(path.read_text(encoding="utf-8"))
        for path in (site.folder / "steps").glob("*/end.json")
    }
    steps = read_steps(records)
    assert [(step.number, step.words[0], step.tasks, step.code) for step in steps] == [
        (0, "true", 3, 0),
        (1, "sh", 1, 4),
    ]


def test_scontrol_tells_what_the_generated_script_asks_for(site: Site) -> None:
    told = site.lines('scontrol show job --oneliner "$SLURM_JOB_ID"')[0]
    assert told.startswith("JobId=1234 ")
    assert " Restarts=0 " in told
    assert "ArrayJobId" not in told
    assert site.lines("scontrol show hostnames") == list(NODES)
    assert site.run("scontrol requeue 1234").returncode == 1


@pytest.mark.parametrize(
    "line",
    [
        "enroot start --rc /rc --env A --mount /a:/a --rw image.sqsh echo in",
        "apptainer exec --bind /a:/a --nv image.sif echo in",
        "singularity run image.sif echo in",
    ],
)
def test_containers_are_entered_where_the_task_is(site: Site, line: str) -> None:
    assert entered(line.split()[1:]) == ["echo", "in"]
    assert site.lines(f"srun {line}") == ["in"] * 3


def test_a_script_that_takes_too_long_is_ended(site: Site) -> None:
    host, _, port = site.job.addresses[0].rpartition(":")
    said = Said(Emulator("http://10.1.2.3:1", ""), lambda: 0.0, lambda *_: None)
    env = {"PATH": os.environ["PATH"]}
    order = {"token": "token", "env": env, "cwd": str(site.folder)}
    lasting = {**order, "argv": ["bash", "-c", "echo $$ >pid; echo up; sleep 1000"]}
    assert run_order("node1", (host, int(port)), lasting, said, 1.0) is None
    pid = (site.folder / "pid").read_text(encoding="ascii").strip()
    wait_until(lambda: not Path("/proc", pid).exists(), DEADLINE_S, "it has ended")
    ending = {**order, "argv": ["bash", "-c", "cat; echo 'no newline\\c'; exit 3"]}
    assert run_order("node1", (host, int(port)), ending, said, DEADLINE_S) == 3
    assert next(line.text for line in said.lines) == "up"


def test_a_node_that_comes_up_late_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        waits = []

        def listen_later(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 3:
                server.listen()

        monkeypatch.setattr("azcp_kit.rehearse.slurm.order.time.sleep", listen_later)
        wait_until_up("node2", server.getsockname())
    assert len(waits) == 3


def test_a_node_that_never_comes_up_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azcp_kit.rehearse.slurm.order._UP_S", 0.01)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        with pytest.raises(PreflightError, match="node2 does not answer"):
            wait_until_up("node2", server.getsockname())


def test_a_line_that_its_own_side_has_closed_has_no_further_frames() -> None:
    here, there = socket.socketpair()
    with there:
        line = Line(here)
        line.close()
        assert line.receive() is None


def test_an_import_is_left_out() -> None:
    assert entered(["import", "docker://registry.example/image"]) == []


def test_options_are_read_in_all_their_forms() -> None:
    options, words = split(
        [
            "-N2",
            "-n",
            "4",
            "--mpi",
            "none",
            "-l",
            "--container-image=a b",
            "--no-container-entrypoint",
            "-K1",
            "-x",
        ]
    )
    assert options["nodes"] == "2"
    assert options["ntasks"] == "4"
    assert options["container-image"] == "a b"
    assert options["kill-on-bad-exit"] == "1"
    assert words == []


def test_what_the_allocation_says_counts_where_srun_is_not_told() -> None:
    env = {"SLURM_NTASKS_PER_NODE": "2", "SLURM_NNODES": "3", "SLURM_NTASKS": "6"}
    assert read_step(["true"], env, NODES).tasks == (0, 0, 1, 1, 2, 2)
    assert read_step(["--ntasks=1", "true"], {}, NODES).nodes == ("node1",)
    assert read_step(["-w", "node3", "true"], {}, NODES).nodes == ("node3",)
    with pytest.raises(RefusedError, match="no nodes node9"):
        read_step(["-w", "node9", "true"], {}, NODES)


def test_only_what_is_exported_reaches_the_tasks() -> None:
    env = {"A": "1", "B": "2", "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "1", "PATH": "/bin"}
    assert exported("ALL", env) == {"A": "1", "B": "2", "SLURM_JOB_ID": "7", "PATH": "/bin"}
    assert exported("NONE", env) == {"SLURM_JOB_ID": "7", "PATH": "/bin"}
    assert exported("A,C=x", env) == {"A": "1", "C": "x", "SLURM_JOB_ID": "7", "PATH": "/bin"}


def test_the_folder_of_the_containers_is_complete_by_itself(tmp_path: Path) -> None:
    job = Job(1, "llama", NODES, ("a:1", "b:1", "c:1"), "token")
    content = files_in("root/", shared_files(job, "#!/bin/bash\n"), ("submit", "steps"))
    with tarfile.open(fileobj=BytesIO(content)) as tar:
        tar.extractall(tmp_path, filter="data")
    root = tmp_path / "root"
    assert (root / "submit").is_dir()
    for program in (root / "bin").iterdir():
        lines = program.read_text(encoding="utf-8").replace("/azcp-rehearsal", str(root)).split("\n")
        # All but the call itself: nothing of the toolkit is needed that is not in the folder.
        alone = "\n".join([*lines[1:-2], "assert azcp_kit.__file__.startswith(sys.path[0])"])
        checked = alone.replace("from azcp_kit", "import azcp_kit\nfrom azcp_kit", 1)
        env = {"PATH": os.environ["PATH"]}
        python = shutil.which("python3", path="/usr/bin") or sys.executable
        subprocess.run([python, "-IS", "-c", checked], env=env, check=True)
