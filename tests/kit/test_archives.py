"""An archive is brought here whole and with the right digest or not at all, and stays in its folder."""

from __future__ import annotations

import hashlib
import io
import lzma
import random
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from azcp_kit.payload import archives
from azcp_kit.payload.archives import cache_folder, obtain, unpack
from azcp_kit.payload.pins import Archive
from azcp_runtime.contract import DownloadError, UsageError

from tests.lab.file_server import FileServer

BODY = bytes(range(256)) * 4096
PATH = "/ucx-1.20.0.tar.gz"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def server() -> Iterator[FileServer]:
    with FileServer({PATH: BODY}) as running:
        yield running


def archive_at(location: str, body: bytes = BODY) -> Archive:
    return Archive("ucx", "1.20.0", location, hashlib.sha256(body).hexdigest())


def kept_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def make_tar(path: Path, *members: tarfile.TarInfo | tuple[str, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                tar.addfile(info, io.BytesIO(member[1]))
    return path


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def special(name: str, kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    return info


def test_a_download_is_kept_and_not_asked_for_again(server: FileServer, tmp_path: Path) -> None:
    archive = archive_at(server.url(PATH))
    first, second = obtain(archive, tmp_path), obtain(archive, tmp_path)
    assert first == second
    assert kept_in(tmp_path) == [first]
    assert first.read_bytes() == BODY
    assert server.asked == [PATH]


def test_another_digest_is_refused_and_nothing_is_kept(server: FileServer, tmp_path: Path) -> None:
    archive = archive_at(f"{server.url(PATH)}?sig=secret", b"something else")
    with pytest.raises(DownloadError, match=hashlib.sha256(BODY).hexdigest()) as failure:
        obtain(archive, tmp_path)
    assert "secret" not in str(failure.value)
    assert kept_in(tmp_path) == []


def test_a_body_that_is_cut_is_told_as_such_and_nothing_is_kept(tmp_path: Path) -> None:
    with (
        FileServer({PATH: BODY}, held_back=5) as server,
        pytest.raises(DownloadError, match="was cut with 5 bytes to come"),
    ):
        obtain(archive_at(server.url(PATH)), tmp_path)
    assert kept_in(tmp_path) == []


def test_what_is_larger_than_any_archive_is_not_read_to_its_end(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "_MOST_BYTES", len(BODY) - 1)
    with pytest.raises(DownloadError, match="larger than"):
        obtain(archive_at(server.url(PATH)), tmp_path)
    assert kept_in(tmp_path) == []


def test_an_absent_file_is_told_with_what_to_do_without_it(server: FileServer, tmp_path: Path) -> None:
    archive = archive_at(f"{server.url('/absent.tar')}?sig=secret")
    with pytest.raises(
        DownloadError, match="ucx 1.20.0 cannot be downloaded .*/absent.tar: .*404"
    ) as failure:
        obtain(archive, tmp_path)
    assert "--ucx PATH@sha256:DIGEST" in failure.value.remedy
    assert "secret" not in str(failure.value)


@pytest.mark.parametrize("location", ["http://127.0.0.1:port/x.tar", "http://127.0.0.1:1/x.tar"])
def test_an_address_where_nothing_answers_is_told(location: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="cannot be downloaded"):
        obtain(archive_at(location), tmp_path)


def test_a_cache_that_cannot_be_written_is_told(server: FileServer, tmp_path: Path) -> None:
    occupied = tmp_path / "file"
    occupied.touch()
    with pytest.raises(DownloadError, match="Not a directory"):
        obtain(archive_at(server.url(PATH)), occupied)


def test_a_name_longer_than_a_file_may_have_is_shortened(tmp_path: Path) -> None:
    path = f"/{'long' * 100}.tar.gz"
    with FileServer({path: BODY}) as server:
        assert obtain(archive_at(server.url(path)), tmp_path).read_bytes() == BODY


def test_a_copy_in_the_cache_that_was_damaged_is_never_used(server: FileServer, tmp_path: Path) -> None:
    archive = archive_at(server.url(PATH))
    kept = obtain(archive, tmp_path)
    kept.write_bytes(BODY[1:])
    with pytest.raises(DownloadError, match=str(kept)):
        obtain(archive, tmp_path)


def test_a_local_archive_is_checked_and_used_where_it_lies(tmp_path: Path) -> None:
    path = tmp_path / "ucx.tar"
    path.write_bytes(BODY)
    assert obtain(archive_at(str(path)), tmp_path / "cache") == path
    assert not (tmp_path / "cache").exists()
    with pytest.raises(DownloadError, match=f"ucx: {path} has sha256"):
        obtain(archive_at(str(path), b"something else"), tmp_path / "cache")


def test_a_local_archive_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="absent.tar cannot be read: No such file"):
        obtain(archive_at(str(tmp_path / "absent.tar")), tmp_path)
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        obtain(archive_at(str(tmp_path)), tmp_path)


def test_the_cache_is_where_xdg_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "azcp-kit"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache/azcp-kit"


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_tar_of_any_compression_is_unpacked_with_its_links(tmp_path: Path, mode: str) -> None:
    members = ("python/bin/python3.13", b"#!"), link("python/bin/python3", "python3.13")
    hard = link("python/bin/same", "python/bin/python3.13", tarfile.LNKTYPE)
    unpack(make_tar(tmp_path / "a.tar", *members, hard, mode=mode), tmp_path / "out")
    folder = tmp_path / "out/python/bin"
    assert (folder / "python3").readlink() == Path("python3.13")
    assert (folder / "same").read_bytes() == b"#!"


OUTSIDE = [
    ("../evil", b"x"),
    ("a/../../evil", b"x"),
    link("up", "../.."),
    link("deep/up", "../../evil"),
    link("absolute", "/etc/passwd"),
    link("hard", "../evil", tarfile.LNKTYPE),
    special("fifo", tarfile.FIFOTYPE),
    special("device", tarfile.CHRTYPE),
]


# Of Python before 3.11.4, which has no filter of its own: what it would let pass.
@pytest.fixture(params=["filter", "no filter"])
def _any_python(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "no filter":
        monkeypatch.setattr(tarfile, "data_filter", lambda member, _path: member)


@pytest.mark.usefixtures("_any_python")
@pytest.mark.parametrize("member", OUTSIDE)
def test_a_member_that_would_leave_the_folder_is_refused(
    tmp_path: Path, member: tarfile.TarInfo | tuple[str, bytes]
) -> None:
    out = tmp_path / "out"
    with pytest.raises(UsageError, match="a.tar cannot be unpacked"):
        unpack(make_tar(tmp_path / "a.tar", member), out)
    assert {path.name for path in tmp_path.iterdir()} <= {"a.tar", "out"}
    assert kept_in(tmp_path) == [tmp_path / "a.tar"]


@pytest.mark.usefixtures("_any_python")
def test_an_absolute_member_never_lands_where_it_says(tmp_path: Path) -> None:
    out, aim = tmp_path / "out", tmp_path / "evil"
    try:
        unpack(make_tar(tmp_path / "a.tar", (str(aim), b"x")), out)
    except UsageError:
        assert kept_in(out) == []
    assert not aim.exists()


@pytest.mark.usefixtures("_any_python")
def test_a_chain_of_links_that_leads_out_is_refused(tmp_path: Path) -> None:
    # Each stays inside as it is written; the last is outside once the second stands.
    members = link("a", "d/up/.."), link("d/up", ".."), ("a/evil", b"x")
    with pytest.raises(UsageError, match="cannot be unpacked"):
        unpack(make_tar(tmp_path / "a.tar", *members), tmp_path / "out/in")
    assert not (tmp_path / "out/evil").exists()


@pytest.mark.parametrize("body", [b"", BODY, lzma.compress(BODY)], ids=["empty", "bytes", "xz"])
def test_what_is_no_tar_is_refused_with_what_is_known(tmp_path: Path, body: bytes) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(body)
    with pytest.raises(UsageError, match="a.tar cannot be unpacked") as failure:
        unpack(path, tmp_path / "out")
    assert "gzip, bzip2 or xz" in failure.value.remedy


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_tar_that_ends_early_is_refused(tmp_path: Path, mode: str) -> None:
    noise = random.Random(0).randbytes(100_000)
    path = make_tar(tmp_path / "a.tar", ("f", noise), mode=mode)
    path.write_bytes(path.read_bytes()[: len(noise) // 2])
    with pytest.raises(UsageError, match="a.tar cannot be unpacked"):
        unpack(path, tmp_path / "out")


@pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w:xz"])
def test_a_compressed_tar_that_is_damaged_is_refused(tmp_path: Path, mode: str) -> None:
    text = "".join(f"{number}\n" for number in range(100_000)).encode()
    path = make_tar(tmp_path / "a.tar", ("f", text), mode=mode)
    body = bytearray(path.read_bytes())
    middle = len(body) // 2
    body[middle : middle + 500] = b"\xff" * 500
    path.write_bytes(body)
    with pytest.raises(UsageError, match="a.tar cannot be unpacked"):
        unpack(path, tmp_path / "out")
