"""The Slurm of the lab: that it behaves as one on four machines does, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from azcp_kit.azurite import Azurite
from azcp_kit.mpirun import rank_environment

from tests.lab.relay import relay
from tests.lab.slurm import Cluster, slurm_cluster
from tests.lab.waiting import wait_until

REPOSITORY = Path(__file__).parents[2]
PREFIX = Path(sys.prefix)
MPI = rank_environment({}, PREFIX, root=True) | {"OPAL_PREFIX": sys.prefix}
WORLD = "from mpi4py import MPI; print(MPI.COMM_WORLD.Get_size(), MPI.COMM_WORLD.allreduce(1))"
TICK_S = 35.0  # slurmctld looks at time limits every 30 s

ON_EACH = """\
#!/bin/bash
#SBATCH --nodes=4
srun --ntasks-per-node=1 bash -c '
    for folder in /tmp /dev/shm /mnt/nvme; do
        echo "$(hostname) $(ls $folder/mine 2>&1)"
        hostname >$folder/mine
    done'
"""
AT_ITS_LIMIT = """\
#!/bin/bash
trap 'echo warned; exit 75' USR1
srun sleep 600 &
wait
"""
# The first time it runs for as long as it is let.
AGAIN = """\
#!/bin/bash
echo "run ${SLURM_RESTART_COUNT:-0}"
[ -n "$SLURM_RESTART_COUNT" ] || srun sleep 600
"""
GET = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=10).status)"
HOLD = """
import sys, time
from pathlib import Path
from tests.lab.slurm import slurm_cluster
with slurm_cluster(Path(sys.argv[1]), nodes=1) as cluster:
    cluster.sbatch("#!/bin/sh\\nsleep 600\\n")
    print(*(machine.init for machine in cluster.site.running.values()), cluster.host_address, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def alone(slurm: None, tmp_path: Path) -> Iterator[Cluster]:
    """One node that cannot load what --mpi=pmix needs, in a cluster that prefers it."""
    assert slurm is None
    with slurm_cluster(tmp_path / "lab", nodes=1, gpus=0, has_pmix=False, MpiDefault="pmi2") as running:
        yield running


def test_all_nodes_are_idle(cluster: Cluster) -> None:
    assert cluster.node_states() == dict.fromkeys(("node1", "node2", "node3", "node4"), "idle")


def test_each_node_has_its_own_name_and_folders(cluster: Cluster) -> None:
    job = cluster.sbatch(ON_EACH)
    cluster.wait(job, "COMPLETED")
    seen = sorted(line.split(maxsplit=1) for line in cluster.output(job).splitlines())
    assert [name for name, _ in seen] == sorted([*cluster.nodes] * 3)
    assert all("No such file" in found for _, found in seen), seen
    for node in cluster.nodes:
        for folder in (cluster.tmp(node), cluster.nvme(node)):
            assert (folder / "mine").read_text() == f"{node}\n"


def test_what_is_shared_has_the_same_path_everywhere(cluster: Cluster) -> None:
    (cluster.shared / "script").write_text("#!/bin/sh\nsrun -N4 sh -c 'pwd; hostname >by-$(hostname)'\n")
    job = cluster.sbatch(cluster.shared / "script", "--nodes=4")
    cluster.wait(job, "COMPLETED")
    assert cluster.output(job) == f"{cluster.shared}\n" * 4
    assert all((cluster.shared / f"by-{node}").exists() for node in cluster.nodes)


def test_a_job_gets_the_gpus_that_it_asks_for(cluster: Cluster) -> None:
    show = "#!/bin/sh\nsrun sh -c 'echo $SLURM_GPUS_ON_NODE $CUDA_VISIBLE_DEVICES'\n"
    jobs = {gpus: cluster.sbatch(show, f"--gpus-per-node={gpus}") for gpus in (2, 8)}
    for job in jobs.values():
        cluster.wait(job, "COMPLETED")
    assert cluster.output(jobs[2]) == "2 0,1\n"
    assert cluster.output(jobs[8]) == "8 0,1,2,3,4,5,6,7\n"


def test_the_exit_code_of_a_script_is_that_of_its_job(cluster: Cluster) -> None:
    assert cluster.wait(cluster.sbatch("#!/bin/sh\nexit 75\n"), "FAILED").exit_code == 75


def test_pmix_makes_one_mpi_world_of_all_nodes(cluster: Cluster) -> None:
    assert "pmix" in cluster.said("srun", "--mpi=list")
    world = cluster.run("srun", "--mpi=pmix", "--nodes=4", sys.executable, "-c", WORLD, env=MPI)
    assert world.stdout == "4 4\n" * 4, world.stderr


def test_without_pmi_each_rank_is_a_world_of_its_own(cluster: Cluster) -> None:
    # Open MPI 4.1 fails where it sees Slurm's variables; a step that loses them is what passes for success.
    hidden = 'for name in ${!SLURM_@}; do unset "$name"; done; exec "$@"'
    argv = ["srun", "--mpi=none", "--nodes=4", "bash", "-c", hidden, "bash", sys.executable, "-c", WORLD]
    # Alone, a rank starts Open MPI's daemon, which it looks for on PATH.
    worlds = cluster.run(*argv, env={**MPI, "PATH": f"{PREFIX}/bin:{os.environ['PATH']}"})
    assert worlds.stdout == "1 1\n" * 4, worlds.stderr


def test_a_plugin_is_listed_though_its_library_is_missing(alone: Cluster) -> None:
    assert "pmix" in alone.said("srun", "--mpi=list")
    assert "can not load PMIx library" in alone.run("srun", "--mpi=pmix", "true").stderr
    assert alone.said("sh", "-c", "scontrol show config | grep MpiDefault").split()[-1] == "pmi2"
    assert alone.said("srun", "hostname") == "node1\n"


def test_a_blob_endpoint_of_this_machine_answers_on_a_node(cluster: Cluster, azurite: Azurite) -> None:
    with relay(cluster.host_address, urlsplit(azurite.endpoint).port or 0) as port:
        url = f"http://{cluster.host_address}:{port}/{azurite.account}?comp=list"
        refused = cluster.run(sys.executable, "-c", GET, url, on="node3")
    assert "HTTP Error 403" in refused.stderr


def test_the_job_of_a_killed_node_runs_again_on_others(cluster: Cluster) -> None:
    job = cluster.sbatch(AGAIN, "--nodes=2", "--requeue", "--open-mode=append")
    wait_until(lambda: "run 0" in cluster.output(job), 20, "the job writes")
    cluster.kill_node("node1")
    cluster.wait(job, "PENDING")
    cluster.start_now(job)
    ended = cluster.wait(job, "COMPLETED")
    assert ended.restarts == 1
    assert "node1" not in ended.fields["NodeList"].replace("node[", "node")
    assert cluster.output(job).splitlines()[-1] == "run 1"
    assert cluster.node_states()["node1"] == "down*"
    cluster.start_node("node1")
    assert (cluster.nvme("node1") / "mine").exists()
    assert cluster.said("srun", "--nodelist=node1", "hostname") == "node1\n"


def test_a_command_that_does_not_end_is_ended(cluster: Cluster) -> None:
    with pytest.raises(TimeoutError, match="longer than"):
        cluster.run("srun", "--nodes=4", "sleep", "600", timeout_s=1)
    cluster.wait_nodes()


def test_nothing_is_left_when_the_block_ends(slurm: None, tmp_path: Path) -> None:
    assert slurm is None
    with contextlib.suppress(ZeroDivisionError), slurm_cluster(tmp_path / "lab", nodes=2) as cluster:
        inits = [machine.init for machine in cluster.site.running.values()]
        address = cluster.host_address
        cluster.sbatch("#!/bin/sh\nsleep 600\n")
        raise ZeroDivisionError
    assert not [init for init in inits if Path("/proc", str(init)).exists()]
    assert address not in interfaces()
    # Other mounts of the machine come and go as they like.
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text(encoding="utf-8")
    assert not list(tmp_path.iterdir())


def test_a_run_that_is_killed_leaves_no_process_and_hinders_no_other(slurm: None, tmp_path: Path) -> None:
    assert slurm is None
    argv = [sys.executable, "-c", HOLD, str(tmp_path / "lab")]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as run:
        assert run.stdout is not None
        *inits, address = run.stdout.readline().split()
        run.send_signal(signal.SIGKILL)
    assert len(inits) == 2
    gone = "its machines and its interface are gone"
    wait_until(lambda: not any(Path("/proc", init).exists() for init in inits), 10, gone)
    wait_until(lambda: address not in interfaces(), 10, gone)
    with slurm_cluster(tmp_path / "next", nodes=1) as cluster:
        assert cluster.said("srun", "hostname") == "node1\n"


# The last of the file: the others have then spent most of the time until slurmctld looks.
def test_a_job_at_its_time_limit_gets_the_signal_that_it_asked_for(cluster: Cluster) -> None:
    job = cluster.sbatch(AT_ITS_LIMIT, "--time=1", "--signal=B:USR1@50", "--nodes=2")
    assert cluster.wait(job, "FAILED", deadline_s=TICK_S).exit_code == 75
    assert cluster.output(job).startswith("warned\n")


def interfaces() -> str:
    """This machine's addresses, as ip shows them."""
    return subprocess.run(["ip", "-4", "addr"], check=True, capture_output=True, text=True).stdout
