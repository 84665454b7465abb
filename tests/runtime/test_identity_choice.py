"""Which identity asks for tokens, from what is configured."""

from __future__ import annotations

import base64
import json
from typing import Final

import pytest
from azcp_runtime.azure.identity import choose_identity
from azcp_runtime.azure.told_identity import told_identity
from azcp_runtime.contract import UsageError

WORKLOAD: Final = {
    "AZURE_FEDERATED_TOKEN_FILE": "/var/run/token",
    "AZURE_CLIENT_ID": "c-1",
    "AZURE_TENANT_ID": "t-1",
}


def chosen(env: dict[str, str], wanted: str = "", *, az: bool = False, imds: bool = False) -> str:
    return str(choose_identity(wanted, env, has_az=az, has_imds=lambda: imds))


@pytest.mark.parametrize(
    ("env", "told"),
    [
        (WORKLOAD, "workload identity, client c-1, tenant t-1 (from AZURE_FEDERATED_TOKEN_FILE)"),
        (WORKLOAD | {"IDENTITY_ENDPOINT": "http://x"}, "workload identity, client c-1, tenant t-1"),
        ({"IDENTITY_ENDPOINT": "http://x"}, "managed identity (from IDENTITY_ENDPOINT)"),
        ({"AZURE_CLIENT_ID": "c-2"}, "managed identity, client c-2 (from the metadata service)"),
        ({}, "managed identity (from the metadata service)"),
        (
            {"AZURE_CLIENT_ID": "c", "AZURE_TENANT_ID": "t", "AZURE_CLIENT_SECRET": "s"},
            "service principal, client c, tenant t (from AZURE_CLIENT_SECRET)",
        ),
    ],
)
def test_the_identity_is_the_one_that_is_configured(env: dict[str, str], told: str) -> None:
    assert chosen(env).startswith(told)


def test_az_login_is_taken_only_where_no_metadata_service_listens() -> None:
    assert chosen({}, az=True, imds=True).startswith("managed identity")
    assert chosen({}, az=True) == "az login (from az)"
    assert chosen({"AZURE_CLIENT_ID": "c"}, az=True).startswith("managed identity, client c")


def test_the_identity_that_was_named_is_taken_whatever_else_is_there() -> None:
    assert chosen(WORKLOAD, "cli", az=True) == "az login (from az)"
    assert chosen(WORKLOAD, "managed").startswith("managed identity, client c-1")


@pytest.mark.parametrize(
    ("env", "wanted", "told"),
    [
        ({}, "workload", "AZURE_FEDERATED_TOKEN_FILE, AZURE_CLIENT_ID, AZURE_TENANT_ID"),
        ({"AZURE_FEDERATED_TOKEN_FILE": "/t"}, "", "AZURE_CLIENT_ID, AZURE_TENANT_ID"),
        ({"AZURE_CLIENT_SECRET": "hidden"}, "", "a service principal needs AZURE_CLIENT_ID, AZURE_TENANT_ID"),
        ({}, "cli", "needs the az command"),
    ],
)
def test_half_an_identity_is_refused_with_all_that_is_missing(
    env: dict[str, str], wanted: str, told: str
) -> None:
    with pytest.raises(UsageError) as caught:
        chosen(env, wanted)
    assert told in str(caught.value)
    assert "hidden" not in str(caught.value)


def token(claims: object) -> str:
    parts = [json.dumps(part).encode() for part in ({"alg": "none"}, claims)]
    return ".".join([*(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts), "signature"])


def test_a_token_says_whose_it_is() -> None:
    claims = {"appid": "c-1", "tid": "t-1", "oid": "o-1", "upn": "someone@example"}
    assert told_identity(token(claims)) == "client c-1, tenant t-1, object o-1"
    assert told_identity(token({"azp": "c-2"})) == "client c-2"


@pytest.mark.parametrize(
    "text", ["", "opaque", "a.b.c", "a.!!.c", token([1]), token({"appid": "x\x1b[2J"}), token({"tid": 7})]
)
def test_a_token_that_says_nothing_sensible_is_not_told_of(text: str) -> None:
    assert told_identity(text) == ""
