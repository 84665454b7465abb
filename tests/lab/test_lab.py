"""The laboratory itself: what it promises the other tests."""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import ssl
import subprocess
import sys
import time
from contextlib import closing
from importlib.metadata import version
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from azcp_runtime.contract import PARTIAL_PREFIX, STATE_DIR
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import ContainerClient

from tests.lab import faults
from tests.lab.content import PERIOD_BYTES, Content
from tests.lab.counting_proxy import CountingProxy
from tests.lab.dataset import NAMES_BEYOND_AZURITE, hard_data_set, plain_data_set
from tests.lab.fault_account import FaultAccount
from tests.lab.faults import Fault
from tests.lab.requirements import VARIABLE
from tests.lab.stored_blobs import StoredBlob, stored
from tests.lab.trees import assert_same, differences, partial_files
from tests.lab.upload import upload
from tests.lab.waiting import wait_until
from tests.lab.wheels import install_wheel, make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from azcp_kit.azurite import Azurite

BLOB = plain_data_set(100_000)
MD5_OF_XYZ = hashlib.md5(b"xyz", usedforsecurity=False).digest()
BYTES = BLOB.blobs[0].content.read(0, 100_000)


def client(account: FaultAccount) -> ContainerClient:
    """The SDK as an anonymous client that does not try again."""
    return ContainerClient.from_container_url(account.url(), retry_total=0)


def get(account: FaultAccount, name: str = "b0", **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    """One GET by the plainest client there is."""
    parts = urlsplit(account.url(f"data/{name}"))
    with closing(http.client.HTTPConnection(parts.netloc, timeout=10)) as connection:
        connection.request("GET", parts.path, headers={k.replace("_", "-"): v for k, v in headers.items()})
        response = connection.getresponse()
        try:
            return response, response.read()
        except http.client.IncompleteRead as broken:
            return response, broken.partial


def account_with(*scripted: Fault) -> FaultAccount:
    return FaultAccount(stored(BLOB), scripted)


def test_any_range_of_a_content_is_a_slice_of_the_whole() -> None:
    content = Content(3 * PERIOD_BYTES + 17, seed=3)
    whole = b"".join(content.pieces())
    assert len(whole) == content.size
    for start, length in [(0, 1), (PERIOD_BYTES - 3, 7), (PERIOD_BYTES * 2, 99), (content.size - 5, 50)]:
        assert content.read(start, length) == whole[start : start + length]
    assert content.sha256() == hashlib.sha256(whole).hexdigest()
    assert content.md5() == hashlib.md5(whole, usedforsecurity=False).digest()


def test_no_two_periods_of_a_content_are_the_same() -> None:
    content = Content(4 * PERIOD_BYTES, seed=3)
    assert len(set(content.pieces())) == 4


def test_a_data_set_is_the_same_for_the_same_seed_and_has_no_name_twice() -> None:
    first, again = (hard_data_set(200, chunk_bytes=1 << 16) for _ in range(2))
    assert first == again
    assert len(first.manifest) == len(first.blobs) == 200


def test_a_tree_with_the_data_set_has_no_differences(tmp_path: Path) -> None:
    data_set = hard_data_set(100, chunk_bytes=1 << 16)
    data_set.write_to(tmp_path)
    assert_same(tmp_path, data_set.manifest)


def test_every_kind_of_difference_is_told(tmp_path: Path) -> None:
    data_set = plain_data_set(10, 20, 30, 40)
    data_set.write_to(tmp_path)
    (tmp_path / "b0").unlink()
    (tmp_path / "b1").write_bytes(bytes(20))
    (tmp_path / "b2").write_bytes(bytes(3))
    (tmp_path / "b3").unlink()
    (tmp_path / "b3").symlink_to("b2")
    (tmp_path / "extra").write_bytes(b"")
    told = [line.split(":")[0] for line in differences(tmp_path, data_set.manifest)]
    assert told == ["missing", "unexpected", "content", "size", "not a file"]


def test_files_of_the_runtime_are_no_difference_but_partial_ones_are_told(tmp_path: Path) -> None:
    (tmp_path / STATE_DIR).mkdir()
    (tmp_path / STATE_DIR / "journal").write_bytes(b"x")
    (tmp_path / f"{PARTIAL_PREFIX}b0").write_bytes(b"x")
    assert differences(tmp_path, {}) == []
    assert partial_files(tmp_path) == [f"{PARTIAL_PREFIX}b0"]


def test_the_sdk_lists_every_name_of_the_account_page_by_page() -> None:
    names = [*hard_data_set(60, chunk_bytes=4096).manifest, *NAMES_BEYOND_AZURITE]
    with FaultAccount({name: StoredBlob(b"x") for name in names}, page_blobs=7) as account:
        with client(account) as reader:
            listed = [blob.name for blob in reader.list_blobs()]
        pages = [exchange for exchange in account.exchanges() if exchange.request.is_list]
    assert listed == sorted(names)
    assert len(pages) == -(-len(names) // 7)


def test_the_sdk_sees_properties_and_metadata() -> None:
    blob = StoredBlob(b"xyz", "0xAB", MD5_OF_XYZ, "gzip", {"hdi_isfolder": "true"}, "Archive")
    with FaultAccount({"p/a": blob, "q": blob}) as account, client(account) as reader:
        (seen,) = reader.list_blobs(name_starts_with="p/", include=["metadata"])
    assert (seen.name, seen.size, seen.etag, seen.blob_tier) == ("p/a", 3, "0xAB", "Archive")
    assert seen.metadata == {"hdi_isfolder": "true"}
    assert seen.content_settings.content_md5 == blob.content_md5
    assert seen.content_settings.content_encoding == "gzip"


def test_the_sdk_reads_what_the_account_holds_by_its_hard_names() -> None:
    data_set = hard_data_set(60, chunk_bytes=4096)
    with FaultAccount(stored(data_set)) as account, client(account) as reader:
        for name, entry in data_set.manifest.items():
            assert hashlib.sha256(reader.download_blob(name).readall()).hexdigest() == entry.sha256
        assert account.served_bytes() == data_set.total_bytes


def test_a_range_is_answered_with_its_bytes_and_the_etag_is_held_against_if_match() -> None:
    with account_with() as account:
        response, body = get(account, x_ms_range="bytes=10-19", If_Match='"0x8DAAAAAAAAAAAAA"')
        assert (response.status, body) == (206, BYTES[10:20])
        assert response.headers["Content-Range"] == "bytes 10-19/100000"
        assert get(account, If_Match='"0xOTHER"')[0].status == 412
        assert get(account, x_ms_range="bytes=100000-")[0].status == 416
        assert get(account, name="nobody")[0].status == 404
        assert account.reads("b0")[0].request.range == (10, 19)


def test_a_fault_applies_to_the_requests_it_names_so_many_times_and_after_so_many() -> None:
    fault = Fault(faults.busy("3"), when=faults.reading("b0"), times=2, after=1)
    with account_with(fault) as account:
        answers = [get(account)[0] for _ in range(4)]
    assert [answer.status for answer in answers] == [200, 503, 503, 200]
    assert answers[1].headers["Retry-After"] == "3"


@pytest.mark.parametrize(
    ("what", "status", "body", "content_range"),
    [
        (faults.half_range(), 206, BYTES[0:50], "bytes 0-49/100000"),
        (faults.wrong_start(8), 206, BYTES[0:100], "bytes 8-107/100000"),
        (faults.wrong_total(-1), 206, BYTES[0:100], "bytes 0-99/99999"),
        (faults.whole_instead_of_range(), 200, BYTES[0:100], None),
        (faults.close_mid_body(30), 206, BYTES[0:30], "bytes 0-99/100000"),
        (faults.wrong_length(5), 206, BYTES[0:100], "bytes 0-99/100000"),
        (faults.wrong_length(-5), 206, BYTES[0:95], "bytes 0-99/100000"),
        (faults.chunked(), 206, BYTES[0:100], "bytes 0-99/100000"),
        (faults.other_etag("0xNEW"), 206, BYTES[0:100], "bytes 0-99/100000"),
    ],
)
def test_a_changed_answer_reaches_a_plain_client(
    what: faults.Change, status: int, body: bytes, content_range: str | None
) -> None:
    with account_with(Fault(what)) as account:
        response, received = get(account, x_ms_range="bytes=0-99")
    assert (response.status, received, response.headers["Content-Range"]) == (status, body, content_range)


@pytest.mark.parametrize("what", [faults.reset_before_headers(), faults.reset_mid_body(50_000)])
def test_a_reset_is_one_and_no_orderly_close(what: faults.Change) -> None:
    with account_with(Fault(what)) as account, pytest.raises(ConnectionResetError):
        get(account)


def test_more_headers_than_a_client_keeps_are_sent() -> None:
    with account_with(Fault(faults.header_bomb())) as account, pytest.raises(http.client.HTTPException):
        get(account)


def test_a_slow_body_takes_its_time() -> None:
    with account_with(Fault(faults.slow(500_000))) as account:
        began = time.monotonic()
        assert get(account)[1] == BYTES
    assert time.monotonic() - began > 0.15


def test_an_account_that_never_answers_ends_with_its_block() -> None:
    with account_with(Fault(faults.never())) as account:
        parts = urlsplit(account.url("data/b0"))
        connection = http.client.HTTPConnection(parts.netloc, timeout=0.2)
        connection.request("GET", parts.path)
        with pytest.raises(TimeoutError):
            connection.getresponse()
        connection.close()


def test_the_clock_of_the_account_can_be_off() -> None:
    with account_with(Fault(faults.skewed_date(-3600))) as account:
        skewed, honest = (get(account)[0].headers["Date"] for _ in range(2))
    assert skewed != honest


def test_an_error_carries_the_code_that_the_sdk_shows() -> None:
    denied = Fault(faults.forbidden("AuthorizationPermissionMismatch"), when=faults.listing)
    told = pytest.raises(HttpResponseError, match=r"AuthorizationPermissionMismatch")
    with account_with(denied) as account, client(account) as reader, told:
        list(reader.list_blobs())


def test_a_tls_account_is_trusted_by_its_own_certificate_alone() -> None:
    with FaultAccount(stored(BLOB), tls=True) as account:
        parts = urlsplit(account.url("data/b0"))
        trusting = ssl.create_default_context(cafile=account.trust["SSL_CERT_FILE"])
        connection = http.client.HTTPSConnection(parts.netloc, context=trusting, timeout=10)
        connection.request("GET", parts.path)
        assert connection.getresponse().read() == BYTES
        connection.close()
        stranger = http.client.HTTPSConnection(parts.netloc, timeout=10)
        with pytest.raises(ssl.SSLCertVerificationError):
            stranger.request("GET", parts.path)


def test_an_uploaded_data_set_comes_back_through_the_counting_proxy(azurite: Azurite, container: str) -> None:
    data_set = hard_data_set(80, chunk_bytes=1 << 16)
    upload(data_set, azurite, container, "deep/")
    credential = {"account_name": azurite.account, "account_key": azurite.key}
    with (
        CountingProxy(azurite.endpoint) as proxy,
        ContainerClient(proxy.endpoint, container, credential=credential) as reader,
    ):
        listed = {blob.name: blob for blob in reader.list_blobs(include=["metadata"])}
        for name, entry in data_set.manifest.items():
            body = reader.download_blob(f"deep/{name}").readall()
            assert hashlib.sha256(body).hexdigest() == entry.sha256, name
        assert proxy.blob_bytes() == data_set.total_bytes
        assert proxy.listings() == 1
    whole = {f"deep/{blob.name}" for blob in data_set.blobs if not blob.in_blocks}
    with_md5 = {name for name, blob in listed.items() if blob.content_settings.content_md5}
    assert whole <= with_md5
    assert listed["deep/large/blocks.bin"].content_settings.content_md5 is None
    assert listed["deep/small"].metadata == {"hdi_isfolder": "true"}
    assert len(listed) == len(data_set.blobs) + len(data_set.markers)


def test_waiting_ends_with_the_condition_or_with_the_deadline() -> None:
    wait_until(lambda: True, 0.0, "true")
    with pytest.raises(TimeoutError, match="never true"):
        wait_until(lambda: False, 0.01, "never true")


SUITE = """
import pytest

@pytest.mark.azurite
def test_that_is_skipped():
    pytest.skip("no such service")

@pytest.mark.docker
def test_that_passes():
    pass
"""


@pytest.mark.parametrize(
    ("required", "options", "code", "told"),
    [
        ("", [], 0, "1 passed, 1 skipped"),
        ("docker", [], 0, "1 passed, 1 skipped"),
        ("azurite", [], 1, "AZCP_TEST_REQUIRE requires azurite"),
        ("azurite", ["-k", "passes"], 1, "requires azurite, and no test that needs it passed"),
        ("podman", [], 4, "AZCP_TEST_REQUIRE names podman"),
    ],
)
def test_a_required_service_cannot_be_skipped_in_silence(
    tmp_path: Path, pytestconfig: pytest.Config, required: str, options: list[str], code: int, told: str
) -> None:
    root = pytestconfig.rootpath
    shutil.copy(root / "tests" / "conftest.py", tmp_path / "conftest.py")
    (tmp_path / "test_suite.py").write_text(SUITE)
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-c",
            root / "pyproject.toml",
            "--rootdir",
            tmp_path,
            "-p",
            "no:cacheprovider",
            *options,
            tmp_path,
        ],
        cwd=root,
        env=os.environ | {VARIABLE: required},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == code, run.stdout + run.stderr
    assert told in run.stdout + run.stderr


def test_a_package_for_a_base_is_installed_there_whatever_this_environment_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = version("iniconfig")
    make_wheel(tmp_path / "index", "iniconfig", here, files={"iniconfig/made.py": b""})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    install_wheel(f"iniconfig=={here}", tmp_path / "base")
    assert list((tmp_path / "base").rglob("iniconfig/made.py"))
    assert version("iniconfig") == here
