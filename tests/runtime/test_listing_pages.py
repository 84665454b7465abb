"""Pages of a listing: read here as the SDK reads them, and what is no page ends in one clear error."""

from __future__ import annotations

from dataclasses import replace
from typing import Final
from xml.etree.ElementTree import ParseError

import pytest
from azcp_runtime.azure import pages
from azcp_runtime.azure.account import list_account
from azcp_runtime.azure.credential import Secret
from azcp_runtime.azure.pages import read_page
from azcp_runtime.azure.retry import RetryLimits
from azcp_runtime.contract import ListError
from azcp_runtime.source.listing import Entry
from azcp_runtime.source.location import BlobLocation, parse_source

from tests.lab.dataset import hard_data_set
from tests.lab.fault_account import FaultAccount
from tests.lab.stored_blobs import StoredBlob, stored

LIMITS: Final = RetryLimits(2, 10.0)
MINIMAL: Final = "<Blob><Name>{name}</Name><Properties><Content-Length>5</Content-Length></Properties></Blob>"

PLAIN: Final = MINIMAL.format(name="a")


def page(*blobs: str) -> bytes:
    return f"<Blobs>{''.join(blobs)}</Blobs>".encode()


def listed(account: FaultAccount) -> list[Entry]:
    location = parse_source(account.url())
    assert isinstance(location, BlobLocation)
    return list(list_account(location, Secret("anonymous"), LIMITS))


def test_it_is_what_the_sdk_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    hard = stored(hard_data_set(60, chunk_bytes=4096))
    one = next(iter(hard.values()))
    odd = {
        "folder": replace(one, content=b"", metadata={"HDI_isfolder": "True"}),
        "cold": StoredBlob(b"ice", tier="Archive"),
        "plain": replace(one, content_md5=None),
        "<&>'\" \u00e9 \U0001f600": one,
    }
    with FaultAccount(hard | odd) as account:
        here = listed(account)
        monkeypatch.setattr(pages, "_BEGIN", b"\0")  # no page has it: all is left to the SDK
        by_sdk = listed(account)
    assert len(here) == len(hard) + len(odd)
    assert here == by_sdk
    assert sum(entry.is_folder for entry in here) == 1


def test_only_a_name_that_says_so_is_decoded() -> None:
    encoded = MINIMAL.replace("<Name>", '<Name Encoded="true">').format(name="p/a%2Fb%EF%BF%BF")
    names = [entry.name for entry in read_page(page(MINIMAL.format(name="p/a%2Fb"), encoded), "p/")]
    assert names == [b"a%2Fb", "a/b\uffff".encode()]


def test_what_is_not_told_is_empty() -> None:
    assert list(read_page(page(MINIMAL.format(name="a")), "")) == [Entry(b"a", 5)]


@pytest.mark.parametrize(
    ("blob", "error"),
    [
        (MINIMAL.format(name=""), ValueError),
        (PLAIN.replace(">5<", ">five<"), ValueError),
        (PLAIN.replace("Content-Length", "Length"), KeyError),
        (
            PLAIN.replace("</Content-Length>", "</Content-Length><Etag>\u00e9</Etag>"),
            ListError,
        ),
        (
            PLAIN.replace("<Name>", '<Name Encoded="true">').replace(">a<", ">%FF<"),
            ValueError,
        ),
        ("<Blob><Name>a</Name>", ParseError),
        ("<Blob><Name>&grown;</Name></Blob>", ParseError),
    ],
)
def test_what_is_no_blob_is_no_entry(blob: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        list(read_page(page(blob), ""))
