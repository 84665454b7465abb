"""Three containers of an injected image: distributed to, then the user's command on each of them."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from azcp_kit.azurite import Azurite
from azcp_kit.image.plan import Ssh
from docker import DockerClient

from tests.lab.bases import Bases, cache_folder
from tests.lab.cluster import DATA, SERVICE, Cluster, Setting, alike, azcp_launch, cluster
from tests.lab.containers import created, run
from tests.lab.dataset import DataSet, plain_data_set
from tests.lab.injected import Injected
from tests.lab.relay import relay
from tests.lab.ssh import make_keys
from tests.lab.trees import assert_same
from tests.lab.upload import upload
from tests.lab.waiting import wait_until

NODES = ("node0", "node1", "node2")
HOSTS = f"--hosts={','.join(NODES)}"
DEST = f"{DATA}/set"
PYTHON = "/opt/azcp/python/bin/python3"
SHOW = "import os; print([dict(os.environ), os.getcwd()])"
DEADLINE_S = 30.0
PODS = ("llama-0", "llama-1", "llama-2")
EVERY_NODE = (f"--hosts=llama-[0-2].{SERVICE}", "--every-node")


@pytest.fixture(scope="module")
def injected(docker: DockerClient, bases: Bases) -> Iterator[Injected]:
    """Injected images, which do not outlive the module."""
    images = Injected(docker, bases, cache_folder())
    yield images
    images.remove()


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The job's key pair."""
    return make_keys(tmp_path_factory.mktemp("job") / "keys")


@pytest.fixture(scope="module")
def locked(
    docker: DockerClient, injected: Injected, keys: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Nodes that run as uid 1000 without a capability on a read-only root."""
    setting = Setting(injected("user1000"), keys, "1000", is_locked=True)
    with cluster(docker, setting, NODES, tmp_path_factory.mktemp("locked")) as running:
        yield running


@dataclass(frozen=True)
class Account:
    """A data set in the account, and what is needed to read it."""

    azurite: Azurite
    path: str
    data_set: DataSet

    @contextmanager
    def seen_from(self, gateway: str) -> Iterator[str]:
        """Its URL for containers behind that gateway."""
        with relay(gateway, urlsplit(self.azurite.endpoint).port or 0) as port:
            yield f"http://{gateway}:{port}/{self.azurite.account}/{self.path}"


@pytest.fixture
def account(azurite: Azurite, container: str) -> Account:
    """Some files in the account."""
    data_set = plain_data_set(0, 1, 4096, 3_000_000)
    upload(data_set, azurite, container, "set/")
    return Account(azurite, f"{container}/set/", data_set)


def places(output: str) -> list[tuple[dict[str, str], str]]:
    """What SHOW printed on each node, in the order of their ranks."""
    shown = [ast.literal_eval(line) for line in output.splitlines() if line.startswith("[{")]
    return sorted(((env, cwd) for env, cwd in shown), key=lambda place: int(place[0]["RANK"]))


def config_of(docker: DockerClient, image: str) -> tuple[dict[str, str], str]:
    """The image's own environment and working directory."""
    config = docker.images.get(image).attrs["Config"]
    return dict(entry.split("=", maxsplit=1) for entry in config["Env"]), config["WorkingDir"] or "/"


@pytest.mark.parametrize(("base", "user", "is_locked"), [("hostile", "0", False), ("user1000", "1000", True)])
def test_a_data_set_of_the_account_is_on_each_node_before_the_command_starts(
    injected: Injected, keys: Path, account: Account, tmp_path: Path, base: str, user: str, *, is_locked: bool
) -> None:
    setting = Setting(injected(base), keys, user, is_locked, {"LAB_WORDS": "two words"})
    key = account.azurite.key
    with (
        cluster(injected.docker, setting, NODES, tmp_path) as running,
        account.seen_from(running.gateway) as source,
    ):
        ended = running.launch(source, DEST, HOSTS, "--", PYTHON, "-Ic", SHOW, AZURE_STORAGE_KEY=key)
        assert ended.status == 0, ended.stderr
        for name in NODES:
            assert_same(running.data(name) / "set", account.data_set.manifest)
    assert key not in ended.stdout + ended.stderr
    own, workdir = config_of(injected.docker, setting.image)
    for rank, (env, cwd) in enumerate(places(ended.stdout)):
        assert (env.pop("RANK"), env.pop("NODE_RANK"), env.pop("NNODES")) == (str(rank), str(rank), "3")
        for prefix in ("", "PET_"):
            place = (env.pop(f"{prefix}MASTER_ADDR"), env.pop(f"{prefix}MASTER_PORT"))
            assert place == ("node0", "29500")
        assert env.pop("PET_NODE_RANK") == str(rank)
        assert (env.pop("HOSTNAME"), cwd) == (NODES[rank], workdir)
        # Docker sets HOME, the interpreter that prints them LC_CTYPE.
        assert {name: env[name] for name in env.keys() - {"HOME", "LC_CTYPE"}} == {
            **own,
            **setting.environment,
        }


def test_a_base_without_a_shell_and_a_uid_without_a_name_are_enough(
    docker: DockerClient, injected: Injected, keys: Path, tmp_path: Path
) -> None:
    setting = Setting(injected("noshell"), keys, "12345", is_locked=True)
    with cluster(docker, setting, NODES, tmp_path) as running:
        ended = running.launch("/opt/azcp/etc", DEST, HOSTS, "--", PYTHON, "-Ic", SHOW)
        assert ended.status == 0, ended.stderr
        assert [env["RANK"] for env, _ in places(ended.stdout)] == ["0", "1", "2"]
        assert (running.data("node2") / "set/image.toml").exists()


def test_a_node_that_never_comes_up_is_named_within_the_deadline(locked: Cluster) -> None:
    ended = locked.launch("/opt/azcp/etc", DEST, "--hosts=node0,node9,node1", "--wait=3", timeout_s=20)
    assert ended.status == 8
    assert "1 of 3 nodes are missing after 3 s: node9: does not resolve" in ended.stderr


def test_two_names_of_one_node_are_refused(locked: Cluster) -> None:
    address = locked.nodes["node1"]
    address.reload()
    ip = address.attrs["NetworkSettings"]["Networks"][locked.network]["IPAddress"]
    ended = locked.launch("/opt/azcp/etc", DEST, f"--hosts=node0,node1,{ip}")
    assert ended.status == 8
    assert f"node1 and {ip} are {ip}" in ended.stderr


def test_a_job_with_other_keys_is_refused_and_does_not_wait(locked: Cluster, tmp_path: Path) -> None:
    stranger = Setting(locked.setting.image, make_keys(tmp_path / "other"), "1000", is_locked=True)
    other = Cluster(locked.client, stranger, locked.network, locked.gateway, locked.nodes, locked.folder)
    ended = other.launch("/opt/azcp/etc", DEST, HOSTS, timeout_s=30)
    assert ended.status == 8
    assert "has a host key that the job's key has not signed" in ended.stderr


def test_a_source_that_is_missing_has_the_exit_code_of_azcp_distribute(locked: Cluster) -> None:
    ended = locked.launch("/no/such/source", DEST, HOSTS, "--", "true")
    assert ended.status == 3
    assert "/no/such/source does not exist" in ended.stderr


def test_the_first_failure_of_the_command_is_the_exit_code_and_ends_the_others(locked: Cluster) -> None:
    script = "test $RANK = 1 && exit 7; exec sleep 300"
    ended = locked.launch("/opt/azcp/etc", DEST, HOSTS, "--compare=size", "--", "sh", "-c", script)
    assert ended.status == 7
    assert "node1: the command ended with 7" in ended.stderr
    for node in locked.nodes.values():
        assert "sleep" not in str(node.top())


def test_a_launcher_that_is_told_to_end_passes_it_on_to_the_command(locked: Cluster) -> None:
    script = "trap 'echo bye; exit 9' TERM; echo ready; while :; do sleep 0.1; done"
    words = ["/opt/azcp/etc", DEST, HOSTS, "--compare=size", "--", "sh", "-c", script]
    with created(locked.client, locked.setting.image, azcp_launch(words), **locked.launcher({})) as launcher:
        launcher.start()
        wait_until(
            lambda: launcher.logs().count(b"ready\n") == 3, DEADLINE_S, "the command runs on three nodes"
        )
        launcher.kill("SIGTERM")
        assert launcher.wait(timeout=DEADLINE_S)["StatusCode"] == 9
        assert launcher.logs().count(b"bye\n") == 3


def test_a_launcher_that_is_told_to_end_while_it_distributes_can_be_started_again(locked: Cluster) -> None:
    words = ["/opt/azcp/python", DEST, HOSTS, "--max-bandwidth=4Mbps", "--no-progress"]
    with created(locked.client, locked.setting.image, azcp_launch(words), **locked.launcher({})) as launcher:
        launcher.start()
        wait_until(lambda: b"[diff]" in launcher.logs(), DEADLINE_S, "the pass begins")
        launcher.kill("SIGTERM")
        assert launcher.wait(timeout=DEADLINE_S)["StatusCode"] == 75


def test_a_chain_of_nodes_starts_each_other(locked: Cluster) -> None:
    ended = locked.launch("/opt/azcp/etc", DEST, HOSTS, AZCP_ENV_OMPI_MCA_routed_radix="1")
    assert ended.status == 0, ended.stderr
    assert "[total]" in ended.stdout


def test_two_ranks_on_each_node_do_not_need_to_read_each_others_memory(locked: Cluster) -> None:
    # Its listing is too long for an eager message.
    ended = locked.launch("/opt/azcp/python", f"{DATA}/rails", HOSTS, "--rails=2")
    assert ended.status == 0, ended.stderr
    assert "[total]" in ended.stdout
    said = ended.stdout + ended.stderr
    # What Open MPI says where the kernel has forbidden it.
    assert "Read -1, expected" not in said
    assert "Operation not permitted" not in said
    trees = [tree_of(locked.data(name) / "rails") for name in NODES]
    assert len(trees[0]) > 500
    assert trees[1:] == trees[:-1]


def test_a_node_alone_needs_neither_hosts_nor_keys(locked: Cluster) -> None:
    script = "test $NNODES = 1 && test $RANK = 0 && exit 4"
    ended = locked.launch("/opt/azcp/etc", "/run/azcp/dest", "--", "sh", "-c", script)
    assert ended.status == 4, ended.stderr


def test_sshd_ends_with_0_when_the_pod_is_deleted(
    docker: DockerClient, injected: Injected, keys: Path, tmp_path: Path
) -> None:
    setting = Setting(injected("user1000"), keys, "1000", is_locked=True)
    with cluster(docker, setting, ["node0"], tmp_path) as running:
        running.nodes["node0"].stop(timeout=20)
        assert running.nodes["node0"].wait()["StatusCode"] == 0
        assert running.nodes["node0"].logs().endswith(b"azcp-sshd: stopped\n")


def test_the_bases_own_sshd_serves_where_the_image_was_built_so(
    docker: DockerClient, injected: Injected, keys: Path, tmp_path: Path
) -> None:
    setting = Setting(injected("debian12", Ssh.PACKAGE), keys, "0")
    with cluster(docker, setting, NODES, tmp_path) as running:
        ended = running.launch("/opt/azcp/etc", DEST, HOSTS, "--", "sh", "-c", "echo here $RANK $HOSTNAME")
        assert ended.status == 0, ended.stderr
        assert "here 2 node2\n" in ended.stdout
        assert b"Accepted publickey" in running.nodes["node2"].logs()


def tree_of(folder: Path) -> dict[str, bytes]:
    """Every file below it by its name, with the digest of its bytes."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).digest()
        for path in folder.rglob("*")
        if path.is_file() and ".azcp" not in path.parts
    }


def endings(running: Cluster) -> dict[str, int]:
    """The exit codes of all nodes, once each has ended."""
    return {name: int(node.wait(timeout=60)["StatusCode"]) for name, node in running.nodes.items()}


def test_nodes_that_all_run_azcp_launch_have_the_data_and_run_the_command(
    injected: Injected, keys: Path, account: Account, tmp_path: Path
) -> None:
    key = account.azurite.key
    setting = Setting(
        injected("user1000"), keys, "1000", is_locked=True, environment={"AZURE_STORAGE_KEY": key}
    )
    port = urlsplit(account.azurite.endpoint).port or 0
    gateway = injected.docker.networks.get("bridge").attrs["IPAM"]["Config"][0]["Gateway"]
    with relay(gateway, port) as relayed:
        source = f"http://{gateway}:{relayed}/{account.azurite.account}/{account.path}"
        words = (source, DEST, *EVERY_NODE, "--", PYTHON, "-Ic", SHOW)
        with alike(injected.docker, setting, PODS, tmp_path, words) as running:
            codes = endings(running)
            log = running.nodes["llama-0"].logs().decode()
            assert codes == dict.fromkeys(PODS, 0), log
            for name in PODS:
                assert_same(running.data(name) / "set", account.data_set.manifest)
            assert b"done, as the leader is" in running.nodes["llama-2"].logs()
    shown = places(log)
    assert [env["HOSTNAME"] for env, _ in shown] == list(PODS)
    assert {env["MASTER_ADDR"] for env, _ in shown} == {f"llama-0.{SERVICE}"}
    assert key not in log.replace(str(shown), "").split("[{")[0]


def test_a_node_that_is_killed_ends_all_and_the_same_job_goes_on_later(
    docker: DockerClient, injected: Injected, keys: Path, tmp_path: Path
) -> None:
    setting = Setting(injected("user1000"), keys, "1000", is_locked=True)
    job = ("/opt/azcp/python/lib", DEST, *EVERY_NODE, "--no-progress", "--compare=size")
    with alike(docker, setting, PODS, tmp_path, (*job, "--max-bandwidth=20Mbps")) as running:
        leader = running.nodes["llama-0"]
        wait_until(
            lambda: any((running.data("llama-1") / "set").rglob("*.py")), DEADLINE_S, "a file is whole"
        )
        running.nodes["llama-2"].kill("SIGKILL")
        assert endings(running) == {"llama-0": 6, "llama-1": 6, "llama-2": 137}, leader.logs()
        assert f"llama-2.{SERVICE}: it was killed".encode() in leader.logs()
        assert f"the leader llama-0.{SERVICE} has ended with 6".encode() in running.nodes["llama-1"].logs()
    with alike(docker, setting, PODS, tmp_path, job) as running:
        assert endings(running) == dict.fromkeys(PODS, 0), running.nodes["llama-0"].logs()
        log = running.nodes["llama-0"].logs().decode()
    kept = re.search(r"\((\d+) peer, .*\), (\d+) skipped", log)
    assert kept is not None, log
    assert int(kept[1]) + int(kept[2]) > 0, log


def test_a_node_that_is_told_to_end_does_so_at_once_as_the_first_process_too(
    docker: DockerClient, injected: Injected, keys: Path, tmp_path: Path
) -> None:
    setting = Setting(injected("user1000"), keys, "1000", is_locked=True)
    with alike(docker, setting, PODS[:2], tmp_path, ("/opt/azcp/etc", DEST, *EVERY_NODE)) as running:
        member = running.nodes["llama-1"]
        wait_until(lambda: b"is there" in member.logs(), DEADLINE_S, "the leader holds it")
        member.kill("SIGTERM")
        assert member.wait(timeout=10)["StatusCode"] == 75
        running.nodes["llama-0"].kill("SIGTERM")
        assert running.nodes["llama-0"].wait(timeout=10)["StatusCode"] == 75


def test_an_mpirun_of_the_image_starts_its_own_daemons_by_the_operators_hostfile(
    docker: DockerClient, injected: Injected, keys: Path, tmp_path: Path
) -> None:
    hostfile = tmp_path / "mpi/hostfile"
    hostfile.parent.mkdir()
    hostfile.write_text("".join(f"{name}.{SERVICE} slots=8\n" for name in NODES))
    operator = {
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
        "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
    }
    show = "echo rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE on $HOSTNAME by $OPAL_PREFIX"
    mpirun = ("mpirun", "--allow-run-as-root", "--map-by", "ppr:1:node", "sh", "-c", show)
    setting = Setting(injected("hostile"), keys, "0")
    with cluster(docker, setting, NODES, tmp_path) as running:
        options = running.launcher(operator)
        options["volumes"] = {**options["volumes"], str(hostfile.parent): {"bind": "/etc/mpi", "mode": "ro"}}
        words = azcp_launch(["/opt/azcp/etc", DEST, "--nodes=3", "--command-on=launcher", "--", *mpirun])
        ended = run(docker, setting.image, words, **options)
        assert ended.status == 0, ended.stderr
        assert "3 nodes by mpi-operator's hostfile /etc/mpi/hostfile" in ended.stderr
        for rank, name in enumerate(NODES):
            assert f"rank {rank} of 3 on {name} by /opt/hpcx/ompi\n" in ended.stdout
            assert (running.data(name) / "set/image.toml").exists()
