"""What SOURCE says, what names become files, and what a listing keeps."""

from __future__ import annotations

from pathlib import Path

import pytest
from azcp_runtime.contract import ListError, UsageError
from azcp_runtime.source.directory import list_directory, pinned_files
from azcp_runtime.source.listing import Entry, decode_listing, make_listing, select
from azcp_runtime.source.location import BlobLocation, DirectoryLocation, parse_source
from azcp_runtime.source.names import objection, refuse_unsafe, shown
from azcp_runtime.source.shardlist import filelist_text, read_below, read_shardlist
from hypothesis import given
from hypothesis import strategies as st


def test_a_blob_url_names_account_container_and_folder() -> None:
    source = parse_source("https://acct.blob.core.windows.net/models/llama?sv=1&sig=abc")
    assert source == BlobLocation(
        "https://acct.blob.core.windows.net", "acct", "models", "llama/", "sv=1&sig=abc"
    )


def test_a_local_endpoint_has_its_account_in_the_path() -> None:
    source = parse_source("http://127.0.0.1:10000/devstoreaccount1/data/a/b/")
    assert source == BlobLocation(
        "http://127.0.0.1:10000/devstoreaccount1", "devstoreaccount1", "data", "a/b/", ""
    )


def test_a_url_is_decoded_once() -> None:
    source = parse_source("https://a.blob.core.windows.net/c/x%2520y")
    assert isinstance(source, BlobLocation)
    assert source.prefix == "x%20y/"


def test_the_signature_of_a_url_is_never_shown() -> None:
    source = parse_source("https://acct.blob.core.windows.net/c/p?sig=SECRET")
    assert "SECRET" not in f"{source} {source!r}"


def test_anything_without_a_scheme_is_a_directory() -> None:
    assert parse_source("/data/set") == DirectoryLocation(Path("/data/set"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ftp://host/c",
        "https://",
        "https://a.blob.core.windows.net",
        "http://127.0.0.1:1/acct",
        "https://u:p@h/a/c",
    ],
)
def test_a_source_without_container_or_with_another_scheme_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_source(text)


@pytest.mark.parametrize(
    "name",
    [
        b"",
        b"/etc/passwd",
        b"a/../b",
        b"..",
        b"a/./b",
        b"a\0b",
        b"x" * 256,
        b"d/" * 1950 + b"x",
        b".azcp/x",
        b"a/.azcp-partial-1",
        b".azcp-partial-x/y",
    ],
)
def test_a_name_that_could_leave_the_destination_is_refused(name: bytes) -> None:
    assert objection(name)


@pytest.mark.parametrize(
    "name", [b"a", b"a b", b"a%2Fb", b"..a/b..", b"x" * 255, "é/é".encode(), b"a\\b", b"\xff"]
)
def test_an_odd_but_harmless_name_is_accepted(name: bytes) -> None:
    assert not objection(name)


def test_all_refused_names_are_listed_at_once() -> None:
    with pytest.raises(ListError, match="3 names cannot be files") as caught:
        refuse_unsafe([b"ok", b"../a", b"/b", b"c\0d"])
    assert all(text in str(caught.value) for text in ("../a", "/b", "c\\x00d"))


def test_a_file_where_a_folder_is_needed_names_both() -> None:
    with pytest.raises(ListError, match="a is a file where a/b/c needs a folder"):
        refuse_unsafe([b"a", b"a/b/c"])


def test_one_name_twice_is_refused_however_short() -> None:
    with pytest.raises(ListError, match="a and a become one file"):
        refuse_unsafe([bytes([97]), b"ab"[:1]])


def test_two_names_that_become_one_file_name_both() -> None:
    with pytest.raises(ListError, match="a//b and a/b become one file"):
        refuse_unsafe([b"a//b", b"a/b"])


def test_control_characters_of_a_name_do_not_reach_the_terminal() -> None:
    assert shown(b"a\x1b[31m\nb\xff") == "a\\x1b[31m\\nb\\xff"


def test_folder_markers_are_left_out_and_empty_files_stay() -> None:
    listing = make_listing(
        [
            Entry(b"meta", 0, is_folder=True),
            Entry(b"slash/", 0),
            Entry(b"", 0),
            Entry(b"parent", 0),
            Entry(b"parent/child", 1),
            Entry(b"empty", 0),
        ]
    )
    assert listing.names == [b"empty", b"parent/child"]


def test_a_real_blob_beside_a_folder_of_its_name_stays_for_the_clash_to_be_told() -> None:
    assert make_listing([Entry(b"a", 5), Entry(b"a/b", 1)]).names == [b"a", b"a/b"]


_entries = st.builds(
    Entry,
    name=st.binary(min_size=1, max_size=20).map(lambda name: name.replace(b"\0", b"x").replace(b"/", b"_")),
    size=st.integers(1, 1 << 48),
    etag=st.sampled_from(["", '"0x8D"']),
    modified=st.integers(0, 1 << 33),
    md5=st.sampled_from([b"", bytes(range(16))]),
    tier=st.sampled_from(["", "Hot", "Archive"]),
)


@given(st.lists(_entries, unique_by=lambda entry: entry.name))
def test_a_listing_survives_its_broadcast(entries: list[Entry]) -> None:
    listing = make_listing(entries)
    received = decode_listing(listing.encoded())
    assert received == listing
    assert received.total_bytes == sum(entry.size for entry in entries)


def test_a_marker_with_bytes_is_no_marker() -> None:
    listing = make_listing([Entry(b"folder/", 3), Entry(b"marked", 3, is_folder=True)])
    assert listing.names == [b"folder/", b"marked"]
    with pytest.raises(ListError, match="folder/ is the name of a folder but has bytes"):
        refuse_unsafe(listing.names)


def test_a_selection_keeps_every_column_in_step() -> None:
    listing = make_listing(
        [
            Entry(b"a", 1, '"x"', 5, bytes(15) + b"\1"),
            Entry(b"b", 2, tier="Archive"),
            Entry(b"c", 3, tier="Archive"),
        ]
    )
    part = select(listing, [0, 2])
    assert (part.names, list(part.sizes), part.archived) == ([b"a", b"c"], [1, 3], [1])
    assert part.content_md5(0) == bytes(15) + b"\1"
    assert part.content_md5(1) is None


def test_a_filelist_reads_back_what_was_written(tmp_path: Path) -> None:
    listing = make_listing([Entry(b"a b/c", 7, '"0x1"', 1_700_000_000), Entry("é".encode(), 0)])
    text, left_out = filelist_text(listing)
    path = tmp_path / "list.tsv"
    path.write_bytes(text.encode())
    assert left_out == 0
    assert text.splitlines()[1] == 'a b/c\t7\tTue, 14 Nov 2023 22:13:20 GMT\t"0x1"'
    assert make_listing(read_shardlist(path)) == listing


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (b"p/a\t1\np/p/a\t1\n", [b"a", b"p/a"]),
        (b"p/a\t1\nb\t1\n", [b"p/a", b"b"]),
        (b"# azcp-distribute: names below the source's folder\np/a\t1\n", [b"p/a"]),
    ],
    ids=["whole names", "one is not whole", "our own list"],
)
def test_a_prefix_is_cut_off_all_names_of_a_list_or_off_none(
    tmp_path: Path, text: bytes, names: list[bytes]
) -> None:
    (tmp_path / "list.tsv").write_bytes(text)
    assert [entry.name for entry in read_below(tmp_path / "list.tsv", "p/")] == names


@pytest.mark.parametrize("size", [-1, 1 << 60])
def test_an_impossible_size_is_refused_by_name(size: int) -> None:
    with pytest.raises(ListError, match="big has an impossible size"):
        make_listing([Entry(b"big", size)])


def test_a_list_of_files_must_meet_the_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1234")
    assert [entry.size for entry in pinned_files(tmp_path, [Entry(b"a", 4)])] == [4]
    with pytest.raises(ListError, match="a has 4 bytes, the list says 3"):
        list(pinned_files(tmp_path, [Entry(b"a", 3)]))
    with pytest.raises(ListError, match="cannot read gone"):
        list(pinned_files(tmp_path, [Entry(b"gone", 0)]))


def test_names_that_a_line_cannot_hold_are_counted(tmp_path: Path) -> None:
    text, left_out = filelist_text(
        make_listing([Entry(b"a\tb", 1), Entry(b"a\nb", 1), Entry(b"#c", 1), Entry(b"d", 1)])
    )
    (tmp_path / "list.tsv").write_text(text)
    assert left_out == 3
    assert [entry.name for entry in read_shardlist(tmp_path / "list.tsv")] == [b"d"]


def test_a_list_passes_over_comments_and_folder_rows(tmp_path: Path) -> None:
    path = tmp_path / "list.tsv"
    path.write_bytes(b"# made by ls\n\nfolder\t-\tDIR\nfile\t 10\t2024-01-01T00:00:00Z\r\n")
    assert list(read_shardlist(path)) == [Entry(b"file", 10, modified=1704067200)]


@pytest.mark.parametrize(
    "line",
    [
        b"only-a-name",
        b"\t5",
        b"a\t5\tnever",
        b"a\t5\t-\tx\x01y",
        b"a\t5,000",
        b"a\t-5",
        b"a\t1_0",
        b"a\tzz",
        "a\t\u0665".encode(),
        b"a\t" + b"9" * 5000,
        b"a\t",
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "list.tsv"
    path.write_bytes(b"fine\t1\n" + line + b"\n")
    with pytest.raises(ListError, match="list.tsv:2"):
        list(read_shardlist(path))


def test_a_directory_lists_its_files_and_not_the_runtimes_own(tmp_path: Path) -> None:
    (tmp_path / "sub" / "deep").mkdir(parents=True)
    (tmp_path / "sub" / "deep" / "x").write_bytes(b"123")
    (tmp_path / ".azcp").mkdir()
    (tmp_path / ".azcp" / "state").write_bytes(b"1")
    (tmp_path / "sub" / ".azcp-partial-1").write_bytes(b"1")
    (tmp_path / "link").symlink_to(tmp_path / "sub" / "deep" / "x")
    listing = make_listing(list_directory(tmp_path))
    assert (listing.names, list(listing.sizes)) == ([b"link", b"sub/deep/x"], [3, 3])


def test_a_link_to_a_folder_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path)
    with pytest.raises(ListError, match="loop is a link to a folder"):
        list(list_directory(tmp_path))


def test_a_dangling_link_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ListError, match="cannot read gone"):
        list(list_directory(tmp_path))
