"""Inside a pod, what its scheduler has left there tells the other nodes, and which of them this one is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from azcp_runtime.contract import UsageError
from azcp_runtime.launch.discovery.find import ALONE, describe, discover
from azcp_runtime.launch.discovery.operator import Operator
from azcp_runtime.launch.discovery.surveyed import Surveyed, domain_of, survey
from azcp_runtime.launch.hosts import Found
from azcp_runtime.launch.index import own_index
from azcp_runtime.launch.options import parse_launch

SERVICE = "llama.default.svc.cluster.local"
KUBELET = f"""# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
10.244.1.7\tllama-2.{SERVICE}\tllama-2
"""


def found(*words: str, name: str = "box", domain: str = "", **env: str) -> Found:
    """What a node finds with these options, its host name and its environment."""
    launch = parse_launch(["/s", "/d", *words], {"NODE_NAME": "aks-1"})
    return discover(launch, Surveyed(env, name, domain))


def refusal(*words: str, name: str = "box", domain: str = "", **env: str) -> str:
    """Why it finds nothing."""
    with pytest.raises(UsageError) as caught:
        found(*words, name=name, domain=domain, **env)
    return str(caught.value)


def test_nothing_means_this_node_alone() -> None:
    assert found() == ALONE
    assert found("--nodes=1") == ALONE


def test_the_operators_hostfile_is_found_by_its_variable_and_at_its_place(tmp_path: Path) -> None:
    path = tmp_path / "hostfile"
    path.write_text("pi-launcher.pi.default.svc slots=1\npi-worker-0.pi.default.svc slots=8\n")
    for name in ("OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile"):
        way = found(name="pi-launcher", **{name: str(path)})
        assert way.hosts == ["pi-launcher.pi.default.svc", "pi-worker-0.pi.default.svc"]
        assert way.own is None
    mounted = Operator({}, path).find()
    assert mounted is not None
    assert mounted.way == f"mpi-operator's hostfile {path}"


def test_a_variable_of_the_image_that_names_no_host_is_not_the_operators(tmp_path: Path) -> None:
    path = tmp_path / "default-hostfile"
    path.write_text("# nothing but comments\n")
    assert found(OMPI_MCA_orte_default_hostfile=str(path)) == ALONE
    assert found(OMPI_MCA_orte_default_hostfile=str(tmp_path / "absent")) == ALONE
    with pytest.raises(UsageError, match="names no host"):
        Operator({}, path).find()


def test_a_list_of_the_users_goes_before_what_is_found(tmp_path: Path) -> None:
    path = tmp_path / "hostfile"
    path.write_text("a\n")
    assert found("--hosts=b,c", OMPI_MCA_orte_default_hostfile=str(path)).hosts == ["b", "c"]


def test_the_kubelets_hosts_file_gives_a_pod_its_domain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert domain_of("llama-2", KUBELET) == SERVICE
    assert domain_of("llama-1", KUBELET) == ""
    assert domain_of("localhost", KUBELET) == ""
    path = tmp_path / "hosts"
    path.write_text(KUBELET)
    for nodename in ("llama-2", f"llama-2.{SERVICE}"):
        monkeypatch.setattr(
            os, "uname", lambda known=nodename: os.uname_result(("Linux", known, "6", "1", "x"))
        )
        assert survey({}, path) == Surveyed({}, "llama-2", SERVICE)
    assert survey({}, tmp_path / "absent").domain == SERVICE


@pytest.mark.parametrize(
    ("name", "env", "kind"),
    [
        ("llama-2", {"JOB_COMPLETION_INDEX": "2"}, "Indexed Job"),
        ("set-workers-0-2", {"JOB_COMPLETION_INDEX": "2"}, "Indexed Job"),
        ("llama-2", {}, "StatefulSet"),
    ],
)
def test_a_pod_of_a_headless_service_knows_its_peers(name: str, env: dict[str, str], kind: str) -> None:
    base = name.removesuffix("-2")
    assert found("--nodes=4", name=name, domain="svc.ns", **env) == Found(
        f"the {kind}'s service svc.ns", [f"{base}-{number}.svc.ns" for number in range(4)], 2
    )


@pytest.mark.parametrize(
    ("name", "domain", "env", "reason"),
    [
        ("llama", "svc", {}, "the host name llama does not end in a dash and a number"),
        ("node-7", "svc", {"JOB_COMPLETION_INDEX": "2"}, "the host name node-7 does not end in -2"),
        ("llama-02", "svc", {}, "does not end in a dash and a number"),
        ("llama-2", "", {}, "/etc/hosts gives it no domain"),
    ],
)
def test_a_number_of_nodes_that_nothing_names_is_refused_with_what_was_looked_at(
    name: str, domain: str, env: dict[str, str], reason: str
) -> None:
    text = refusal("--nodes=4", name=name, domain=domain, **env)
    assert "--nodes says 4, and nothing names them" in text
    assert reason in text
    assert "/etc/mpi/hostfile" in text
    assert "VC_<TASK>_HOSTS" in text


def test_a_number_beyond_the_nodes_is_refused() -> None:
    assert "this node is llama-4, --nodes says 4" in refusal("--nodes=4", name="llama-4", domain="svc")


def test_a_number_of_nodes_that_differs_from_what_is_found_is_refused() -> None:
    assert "--nodes says 3, --hosts has 2" in refusal("--nodes=3", "--hosts=a,b")
    assert "--nodes says 3, Volcano's VC_W_HOSTS has 2" in refusal(
        "--nodes=3", name="j-w-0", VC_W_HOSTS="j-w-0,j-w-1"
    )


def test_volcanos_task_is_found_by_the_host_name() -> None:
    tasks = {
        "VC_PS_HOSTS": "j-ps-0.j",
        "VC_MY_WORKER_HOSTS": "j-my-worker-0.j,j-my-worker-1.j",
        "VC_PS_NUM": "1",
    }
    worker = found(name="j-my-worker-1", VK_TASK_INDEX="0", **tasks)
    assert worker == Found("Volcano's VC_MY_WORKER_HOSTS", ["j-my-worker-0.j", "j-my-worker-1.j"], 1)


def test_volcanos_master_starts_the_workers() -> None:
    tasks = {"VC_MASTER_HOSTS": "j-master-0.j", "VC_WORKER_HOSTS": "j-worker-0.j,j-worker-1.j"}
    master = found(name="j-master-0", VC_TASK_INDEX="0", **tasks)
    assert master == Found("Volcano's VC_WORKER_HOSTS", ["j-worker-0.j", "j-worker-1.j"], None)
    text = refusal(name="j-master-0", VC_PS_HOSTS="j-ps-0.j", **tasks)
    assert "this node is all of the Volcano task master, and there are ps, worker" in text


def test_volcanos_index_serves_where_the_host_name_is_the_machines() -> None:
    tasks = {"VC_W_HOSTS": "j-w-0.j,j-w-1.j"}
    assert found(name="aks-7", VC_TASK_INDEX="1", **tasks).own == 1
    assert "which of the 2 hosts this node is cannot be told" in refusal(name="aks-7", **tasks)
    assert "which task of a, b it is of" in refusal(name="aks-7", VC_A_HOSTS="x", VC_B_HOSTS="y")


def test_a_volcano_job_of_one_node_leads_itself() -> None:
    assert found(name="j-w-0", VC_W_HOSTS="j-w-0.j").own == 0


@pytest.mark.parametrize(
    ("env", "name", "index"),
    [
        ({"AZCP_INDEX": "2"}, "a-0", 2),
        ({"AZCP_INDEX": "llama-1"}, "a-0", 1),
        ({}, "a-1", 1),
        ({"JOB_COMPLETION_INDEX": "0"}, "a-1", 1),
        ({"JOB_COMPLETION_INDEX": "2"}, "machine", 2),
        ({"VK_TASK_INDEX": "1"}, "machine", 1),
        ({"VC_TASK_INDEX": "1"}, "machine", 1),
    ],
)
def test_which_node_this_is(env: dict[str, str], name: str, index: int) -> None:
    assert own_index(env, name, ["a-0.svc", "a-1.svc", "a-2.svc"]) == index


@pytest.mark.parametrize(
    ("env", "reason"),
    [
        ({"AZCP_INDEX": "3"}, "AZCP_INDEX is '3', and there are 3 hosts"),
        ({"AZCP_INDEX": "llama"}, "AZCP_INDEX is 'llama'"),
        ({"AZCP_INDEX": "-1"}, "AZCP_INDEX is '-1'"),
        ({"JOB_COMPLETION_INDEX": "9"}, "JOB_COMPLETION_INDEX is '9'"),
        ({}, "which of the 3 hosts this node is cannot be told"),
    ],
)
def test_what_is_no_index_is_refused(env: dict[str, str], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        own_index(env, "machine", ["a-0", "a-1", "a-2"])


def test_one_first_label_in_two_services_says_nothing() -> None:
    with pytest.raises(UsageError, match="cannot be told"):
        own_index({}, "a-0", ["a-0.x", "a-0.y"])


def test_every_node_without_any_is_refused() -> None:
    assert "--every-node, and nothing names the nodes; looked at: --hosts" in refusal("--every-node")


def test_options_for_alike_nodes_are_refused_where_one_starts_the_others(tmp_path: Path) -> None:
    path = tmp_path / "hostfile"
    path.write_text("a\nb\n")
    env = {"OMPI_MCA_orte_default_hostfile": str(path)}
    text = refusal("--alone-after=5", "--node-file=/x/y", **env)
    assert "--alone-after needs --every-node" in text
    assert "--node-file needs --every-node" in text
    assert "--alone-after, and nothing names the nodes" in refusal("--alone-after=5")
    assert found("--node-file=/x/y") == ALONE


def test_one_line_says_how_the_nodes_were_found() -> None:
    launch = parse_launch(["/s", "/d"], {})
    node = Surveyed({}, "llama-1", "svc")
    way = Found("--hosts", ["llama-0.svc", "llama-1.svc"], 1)
    assert describe(way, launch, node) == (
        "2 nodes by --hosts; this is number 1, llama-1.svc, and follows llama-0.svc"
    )
    assert describe(Found("--hosts", ["a"]), launch, node) == "1 node by --hosts, each with an azcp-sshd"
    assert describe(ALONE, launch, node).endswith("though it may be one of several: --nodes N says so")
    assert describe(ALONE, launch, Surveyed({}, "box", "")) == "this node alone: nothing names others"
