"""Variables and $(NAME) come out as the kubelet computes them, and what is missing is the kubelet's error."""

from __future__ import annotations

from typing import Any

import pytest
from azcp_kit.rehearse.environment import API_SERVER, ContainerConfigError, resolve_environment
from azcp_kit.rehearse.expand import expand
from azcp_kit.rehearse.fields import Fields
from azcp_kit.rehearse.store import Store
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.rehearsed import PLACE

STORE = Store(
    secrets={("ml", "keys"): {"key": b"s3cret", "bad name!": b"x"}, ("other", "far"): {"key": b"no"}},
    config_maps={("ml", "settings"): {"MODE": b"fast", "n.m": b"1"}},
)


def resolved(store: Store = STORE, **fields: Any) -> dict[str, str]:  # noqa: ANN401 - parts of a container
    """The variables without those that every pod has."""
    found = resolve_environment(Fields(fields, "container"), PLACE, store)
    return {name: value for name, value in found.items() if name not in API_SERVER}


def from_field(path: str) -> dict[str, Any]:
    return {"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}}


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("$(A)", "1"),
        ("$(A)$(A)-$(B)", "11-$(B)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$A", "$A"),
        ("$(A", "$(A"),
        ("$", "$"),
        ("a$", "a$"),
        ("$()", "$()"),
        ("$($(A))", "$($(A))"),
        ("100%$ $(A)", "100%$ 1"),
    ],
)
def test_a_reference_is_expanded_exactly_as_kubernetes_does(text: str, result: str) -> None:
    assert expand(text, {"A": "1"}) == result


@given(st.text(alphabet="$()AB x", max_size=30))
def test_a_text_without_known_names_only_loses_doubled_dollars(text: str) -> None:
    assert expand(text, {}).replace("$", "") == text.replace("$", "")


def test_later_variables_see_earlier_ones_and_win_over_those_of_the_same_name() -> None:
    env = [
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)2$(C)"},
        {"name": "C", "value": "3"},
        {"name": "A", "value": "4"},
    ]
    assert resolved(env=env) == {"A": "4", "B": "12$(C)", "C": "3"}


def test_a_variable_sees_what_comes_from_a_whole_config_map_and_replaces_it() -> None:
    env = [{"name": "SPEED", "value": "very $(p_MODE)"}, {"name": "p_n.m", "value": "2"}]
    found = resolved(envFrom=[{"prefix": "p_", "configMapRef": {"name": "settings"}}], env=env)
    assert found == {"p_MODE": "fast", "SPEED": "very fast", "p_n.m": "2"}


def test_keys_that_are_no_names_are_left_out_of_a_whole_secret() -> None:
    assert resolved(envFrom=[{"secretRef": {"name": "keys"}}]) == {"key": "s3cret"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "llama-1-x7k2p"),
        ("metadata.namespace", "ml"),
        ("metadata.labels['app']", "llama"),
        ("metadata.annotations['note']", "n"),
        ("metadata.labels['absent']", ""),
        ("spec.nodeName", "node-1"),
        ("status.podIP", "172.20.0.3"),
        ("status.hostIP", "172.20.0.1"),
    ],
)
def test_the_downward_api_tells_about_the_pod(path: str, value: str) -> None:
    assert resolved(env=[from_field(path)]) == {"X": value}


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ({"resource": "limits.memory", "divisor": "1Mi"}, "1536"),
        ({"resource": "limits.cpu"}, "4"),
        ({"resource": "requests.cpu"}, "1"),
    ],
)
def test_a_resource_is_told_in_units_rounded_up_and_the_nodes_where_there_is_no_limit(
    reference: dict[str, str], value: str
) -> None:
    resources = {"limits": {"memory": "1.5Gi"}, "requests": {"cpu": "250m"}}
    env = [{"name": "X", "valueFrom": {"resourceFieldRef": reference}}]
    assert resolved(resources=resources, env=env) == {"X": value}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"secretKeyRef": {"name": "far", "key": "key"}}, 'secret "far" not found'),
        ({"secretKeyRef": {"name": "keys", "key": "kez"}}, "couldn't find key kez in Secret keys"),
        ({"configMapKeyRef": {"name": "none", "key": "k"}}, 'configmap "none" not found'),
        ({"fieldRef": {"fieldPath": "spec.secrets"}}, "is no field of a pod"),
    ],
)
def test_what_is_not_there_keeps_the_container_from_being_made(source: dict[str, Any], said: str) -> None:
    with pytest.raises(ContainerConfigError, match=said):
        resolved(env=[{"name": "X", "valueFrom": source}])


def test_what_may_be_absent_is_left_out() -> None:
    source = {"secretKeyRef": {"name": "none", "key": "k", "optional": True}}
    whole = {"secretRef": {"name": "none", "optional": True}}
    assert resolved(env=[{"name": "X", "valueFrom": source}], envFrom=[whole]) == {}


def test_every_pod_is_told_where_the_api_server_would_be() -> None:
    assert resolve_environment(Fields({}, "c"), PLACE, Store())["KUBERNETES_SERVICE_PORT"] == "443"
