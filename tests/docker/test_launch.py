"""Three containers of an injected image: distributed to, then the user's command on each of them."""

from __future__ import annotations

import ast
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
from tests.lab.cluster import DATA, Cluster, Setting, azcp_launch, cluster
from tests.lab.containers import created
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
        assert (env.pop("MASTER_ADDR"), env.pop("MASTER_PORT")) == ("node0", "29500")
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
