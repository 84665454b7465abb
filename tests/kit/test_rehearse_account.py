"""The emulator takes the account's place in words, variables and files; nothing else of them changes."""

from __future__ import annotations

import base64
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from azcp_kit.azurite import find_azurite, run_azurite
from azcp_kit.rehearse.account import (
    MADE_UP_SAS,
    Distribution,
    Emulator,
    Source,
    find_distribution,
    find_sources,
)
from azcp_kit.rehearse.cargo import Cargo, differences, make_cargo, upload_cargo
from azure.storage.blob import ContainerClient

from tests.lab.requirements import missing

KEY = base64.b64encode(b"k" * 32).decode()
EMULATOR = Emulator("http://172.20.0.1:10000", KEY)
URL = "https://exampleacct.blob.core.windows.net/models/llama%20two/"
HERE = "http://172.20.0.1:10000/exampleacct/models/llama%20two/"


@pytest.mark.parametrize(
    ("text", "result"),
    [
        (URL, HERE),
        (f"--source={URL}", f"--source={HERE}"),
        (f"azcp-distribute '{URL}' /d", f"azcp-distribute '{HERE}' /d"),
        ("https://acct.z01.blob.storage.azure.net/c", "http://172.20.0.1:10000/acct/c"),
        ("https://acct.dfs.core.windows.net/c/p", "http://172.20.0.1:10000/acct/c/p"),
        ("https://example.com/c/p", "https://example.com/c/p"),
        ("https://acct.blob.core.windows.net.example.com", "http://172.20.0.1:10000/acct.example.com"),
    ],
)
def test_urls_of_accounts_become_the_emulators(text: str, result: str) -> None:
    assert EMULATOR.url(text) == result


def test_a_signature_in_a_url_is_replaced() -> None:
    query = parse_qs(urlsplit(EMULATOR.url(f"{URL}?sv=1&sig=abc%3D")).query)
    assert query["sp"] == ["rl"]
    assert query["sig"] != ["abc="]


def test_a_credential_arrives_through_the_manifests_own_variable() -> None:
    found = EMULATOR.variables({"AZCP_SAS": "sv=1&sig=mine", "X": "1"}, [URL])
    assert found["X"] == "1"
    assert "mine" not in found["AZCP_SAS"]
    assert "AZURE_STORAGE_KEY" not in found
    assert EMULATOR.variables({"AZURE_STORAGE_KEY": "mine"}, [URL]) == {"AZURE_STORAGE_KEY": KEY}
    connection = EMULATOR.variables({"AZURE_STORAGE_CONNECTION_STRING": "x"}, [URL])
    assert f"BlobEndpoint={HERE.partition('/models')[0]}" in connection["AZURE_STORAGE_CONNECTION_STRING"]


def test_an_identity_is_replaced_by_the_key_only_where_an_account_is_read() -> None:
    assert EMULATOR.variables({}, [URL]) == {"AZURE_STORAGE_KEY": KEY}
    assert EMULATOR.variables({"SOURCE": URL}, []) == {"AZURE_STORAGE_KEY": KEY, "SOURCE": HERE}
    assert EMULATOR.variables({}, ["/opt/azcp/bin/azcp-sshd"]) == {}
    assert EMULATOR.variables({}, [URL, "/d", "--sas-file", "/run/sas"]) == {}
    assert EMULATOR.words([URL, "--auth", "identity"]) == (HERE, "--auth", "auto")
    assert EMULATOR.words([URL, "--auth=identity"]) == (HERE, "--auth=auto")


def test_a_file_that_is_a_signature_is_the_emulators_and_another_stays() -> None:
    for content in (b"?sv=1&sig=abc", MADE_UP_SAS):
        assert b"abc" not in EMULATOR.file(content, "exampleacct")
        assert b"&sig=" in EMULATOR.file(content, "exampleacct")
    assert EMULATOR.file(b"\xff\x00", "exampleacct") == b"\xff\x00"


def test_the_key_is_not_in_its_repr() -> None:
    assert KEY not in repr(EMULATOR)


def test_sources_are_found_in_any_text_and_decoded() -> None:
    texts = [f"x {URL} y", "https://other.blob.core.windows.net/c12/", "https://a.blob.core.windows.net/.."]
    assert find_sources(texts) == (
        Source("exampleacct", "models", "llama two"),
        Source("other", "c12", ""),
    )


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["/opt/azcp/bin/azcp-launch", URL, "/d", "--every-node"], Distribution(URL, "/d", True)),
        (
            ["azcp-launch", "--hosts", "a,b", "/nfs/x", "/d", "--", "azcp-distribute"],
            Distribution("/nfs/x", "/d", False),
        ),
        (["sh", "-c", f"set -e; exec azcp-distribute '{URL}' /d --verify"], Distribution(URL, "/d", False)),
        (["sh", "-c", "azcp-distribute 'unclosed"], None),
        (["/opt/azcp/bin/azcp-sshd"], None),
        (["azcp-distribute", "--help"], None),
    ],
)
def test_what_is_distributed_is_read_from_the_command(words: list[str], found: Distribution | None) -> None:
    assert find_distribution(words) == found


@pytest.fixture
def cargo(tmp_path: Path) -> Cargo:
    """A small data set."""
    return make_cargo(tmp_path / "data", 1 << 20)


@pytest.mark.azurite
def test_the_emulators_signature_reads_a_data_set_under_every_prefix(cargo: Cargo, tmp_path: Path) -> None:
    if find_azurite() is None:
        missing("azurite", "Azurite is not installed: put Node.js with npm on PATH, then `make clean venv`")
    sources = [Source("one", "models", "a/b"), Source("one", "models", "c"), Source("two", "data", "")]
    with run_azurite(tmp_path / "azurite", accounts=("one", "two")) as azurite:
        upload_cargo(cargo, azurite, sources, tmp_path / "work")
        emulator = Emulator(azurite.endpoint.rpartition("/")[0], azurite.key)
        for source in sources:
            address = f"{emulator.base}/{source.account}/{source.container}?{emulator.sas(source.account)}"
            with ContainerClient.from_container_url(address) as client:
                start = f"{source.prefix}/" if source.prefix else ""
                names = {name.removeprefix(start) for name in client.list_blob_names(name_starts_with=start)}
                assert names == cargo.digests.keys()


def test_a_nodes_folder_is_compared_byte_by_byte(cargo: Cargo) -> None:
    from azcp_kit.rehearse.archive import tree_tar

    def found() -> tuple[str, ...]:
        return differences(cargo, iter([tree_tar("set", cargo.folder)]))

    assert found() == ()
    (cargo.folder / ".azcp").mkdir()
    (cargo.folder / ".azcp/journal").touch()
    (cargo.folder / "names/.azcp-partial-1").touch()
    assert found() == ()
    first, second, *_ = sorted(cargo.digests)
    (cargo.folder / first).unlink()
    (cargo.folder / second).write_bytes(b"other")
    (cargo.folder / "more").symlink_to("/etc/passwd")
    assert [line.rpartition(" ")[2] for line in found()] == ["missing", "set", "bytes"]
