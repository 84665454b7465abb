"""What a pod asks for of its confinement and probes is understood, and what it must not have is withheld."""

from __future__ import annotations

from typing import Any

import pytest
from azcp_kit.rehearse.pod import Restart
from azcp_kit.rehearse.probe import Probe
from azcp_kit.rehearse.security import Security
from azcp_runtime.contract import UsageError

from tests.kit.rehearsed import MAIN, pod

LOCKED = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def security(container: dict[str, Any], context: dict[str, Any] | None = None) -> Security:
    spec = {"securityContext": context or {}, "containers": [{**MAIN, "securityContext": container}]}
    return pod(spec).main[0].security


def probe(**fields: Any) -> Probe:  # noqa: ANN401 - parts of a probe
    container = {**MAIN, "ports": [{"name": "ssh", "containerPort": 2222}], "readinessProbe": fields}
    found = pod({"containers": [container]}).main[0].readiness
    assert found is not None
    return found


def test_a_locked_container_is_locked() -> None:
    found = security(LOCKED)
    assert found.dropped == ("ALL",)
    assert found.is_read_only
    assert found.no_new_privileges
    assert not security({}).no_new_privileges


def test_a_container_says_more_than_its_pod() -> None:
    found = security({"runAsUser": 5}, {"runAsUser": 1000, "runAsGroup": 7, "fsGroup": 9})
    assert (found.uid, found.gid, found.groups) == (5, 7, (9,))
    assert found.user("root") == "5:7"


@pytest.mark.parametrize(
    ("context", "image_user", "user"),
    [
        ({}, "app", ""),
        ({"runAsUser": 1000}, "app", "1000"),
        ({"runAsGroup": 5}, "app:users", "app:5"),
        ({"runAsGroup": 5}, "", "0:5"),
    ],
)
def test_the_user_is_the_images_own_unless_it_is_said(
    context: dict[str, int], image_user: str, user: str
) -> None:
    assert security(context).user(image_user) == user


@pytest.mark.parametrize(
    ("context", "image_user", "said"),
    [
        ({"runAsNonRoot": True}, "", "image will run as root"),
        ({"runAsNonRoot": True, "runAsUser": 0}, "1000", "image will run as root"),
        ({"runAsNonRoot": True}, "app", "non-numeric user (app)"),
        ({"runAsNonRoot": True}, "1000:1000", ""),
        ({"runAsNonRoot": True, "runAsUser": 1000}, "root", ""),
        ({}, "root", ""),
    ],
)
def test_an_image_that_would_run_as_root_is_refused_where_it_must_not(
    context: dict[str, Any], image_user: str, said: str
) -> None:
    refusal = security(context).refusal(image_user)
    assert said in refusal
    assert bool(refusal) == bool(said)


@pytest.mark.parametrize("name", ["SYS_ADMIN", "CAP_SYS_PTRACE", "NET_ADMIN", "ALL", "sys_module"])
def test_capabilities_that_reach_out_of_a_container_are_withheld(name: str) -> None:
    found = security({"capabilities": {"add": [name, "IPC_LOCK"]}})
    assert found.added == ("IPC_LOCK",)
    assert found.withheld == (f"capability {name.upper().removeprefix('CAP_')}",)


def test_nobody_is_privileged() -> None:
    assert security({"privileged": True}).withheld == ("privileged: true",)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"tcpSocket": {"port": "ssh"}}, Probe(port=2222)),
        ({"tcpSocket": {"port": 22}, "periodSeconds": 5}, Probe(port=22, period_s=5)),
        ({"exec": {"command": ["test", "-e", "/x"]}}, Probe(argv=("test", "-e", "/x"))),
        (
            {"httpGet": {"port": 8080, "path": "/ok", "scheme": "HTTPS"}},
            Probe(port=8080, path="/ok", is_https=True),
        ),
        ({"grpc": {"port": 1}}, Probe(unknown="grpc")),
    ],
)
def test_probes_are_understood(fields: dict[str, Any], expected: Probe) -> None:
    assert probe(**fields) == expected


def test_a_probe_of_a_port_that_the_container_has_not_is_refused() -> None:
    with pytest.raises(UsageError, match="no port of the container"):
        probe(tcpSocket={"port": "http"})


def test_restart_policies_decide_by_the_exit_code() -> None:
    codes = [(policy, code) for policy in Restart for code in (0, 1)]
    assert [policy.applies(code) for policy, code in codes] == [True, True, False, True, False, False]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"containers": []}, "containers is empty"),
        ({"containers": [{"name": "c"}]}, "image is absent"),
        ({"restartPolicy": "Sometimes"}, "restartPolicy is 'Sometimes'"),
    ],
)
def test_a_specification_that_is_none_is_refused(spec: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        pod(spec)


def test_an_init_container_that_always_restarts_is_a_sidecar_and_a_main_one_is_not() -> None:
    always = {**MAIN, "restartPolicy": "Always"}
    found = pod({"initContainers": [MAIN, always], "containers": [always]})
    assert [container.is_sidecar for container in found.containers] == [False, True, False]
