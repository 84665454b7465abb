"""What is refused of a SOURCE, with what to write instead, and which hosts name their account."""

from __future__ import annotations

import pytest
from azcp_runtime.contract import UsageError
from azcp_runtime.source.location import BlobLocation, parse_source


def parsed(text: str) -> BlobLocation:
    found = parse_source(text)
    assert isinstance(found, BlobLocation)
    return found


@pytest.mark.parametrize(
    "host",
    [
        "acct.blob.core.windows.net",
        "ACCT.blob.core.windows.net",
        "acct.privatelink.blob.core.windows.net",
        "acct.blob.core.chinacloudapi.cn",
        "acct.blob.core.usgovcloudapi.net",
        "acct.z01.blob.storage.azure.net",
        "acct.z01.privatelink.blob.storage.azure.net",
        "acct.blob.region.stack.example:8443",
        "acct-secondary.blob.core.windows.net",
    ],
)
def test_a_blob_host_names_the_account(host: str) -> None:
    assert parsed(f"https://{host}/c/p") == BlobLocation(f"https://{host}", "acct", "c", "p/")


@pytest.mark.parametrize(
    "host", ["127.0.0.1:10000", "[::1]:10000", "[::1]", "localhost", "data.example.com", "blob.example.com"]
)
def test_any_other_host_has_the_account_in_its_path(host: str) -> None:
    assert parsed(f"https://{host}/acct/c/p") == BlobLocation(f"https://{host}/acct", "acct", "c", "p/")


@pytest.mark.parametrize(
    ("host", "instead"),
    [
        ("a.dfs.core.windows.net", "a.blob.core.windows.net"),
        ("a.privatelink.dfs.core.windows.net", "a.privatelink.blob.core.windows.net"),
        ("a.z01.file.storage.azure.net", "a.z01.blob.storage.azure.net"),
    ],
)
def test_the_endpoint_of_another_service_is_refused_with_the_right_one(host: str, instead: str) -> None:
    with pytest.raises(UsageError, match=f"{host} is not the Blob endpoint; write {instead}$"):
        parse_source(f"https://{host}/c/p?sig=SECRET")


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("/runs/run#1/final", "write %23"),
        ("/runs/run#", "write %23"),
        ("/runs/run#1?sig=SECRET", "write %23"),
        ("/runs/100%", "write %25"),
        ("/runs/100%/x", "write %25"),
        ("/runs/%zz", "write %25"),
        ("/ru%ns/x", "write %25"),
        ("/runs/%ff", "UTF-8"),
        ("/%ff/x", "UTF-8"),
        (":99999/runs", "not a URL"),
        (":-1/runs", "not a URL"),
        (":0/runs", "not a URL"),
        (":port/runs", "not a URL"),
    ],
)
def test_a_malformed_url_is_refused_with_its_remedy(rest: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        parse_source(f"https://a.blob.core.windows.net{rest}{'' if '?' in rest else '?sig=SECRET'}")
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["http://[::1/a/c", "http://[::g]/a/c", "https://@host/a/c", "https://:1/a/c"]
)
def test_a_malformed_host_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="SOURCE"):
        parse_source(text)


def test_an_escaped_sign_is_part_of_the_name() -> None:
    assert parsed("https://a.blob.core.windows.net/runs/run%231/100%25").prefix == "run#1/100%/"


def test_the_container_is_decoded_too() -> None:
    assert parsed("https://a.blob.core.windows.net/%24web/x").container == "$web"
