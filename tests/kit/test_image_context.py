"""The build context is a folder of its own with what the Dockerfile copies, equal byte for byte each time."""

from __future__ import annotations

import hashlib
import io
import os
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from azcp_kit.image.context import Supplies, lay_out, write_tar
from azcp_kit.image.plan import Mpi, Rdma, Ssh, Wishes, plan_injection
from azcp_kit.inspect.facts import ImageFacts
from azcp_kit.payload import assemble
from azcp_kit.payload.components import Component
from azcp_kit.payload.tree import EPOCH_S
from azcp_runtime.contract import DownloadError

from tests.kit.image_facts import bare, debian, verbs
from tests.lab.small_payload import SmallPayload, make_small_payload

BELONGS = "this belongs to the current folder"


@pytest.fixture
def payload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallPayload:
    made = make_small_payload(tmp_path / "parts")
    monkeypatch.setattr(assemble, "_requirements", lambda: made.lock)
    return made


@pytest.fixture(autouse=True)
def current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "current"
    for name in ("Dockerfile", "vendor-amd64/secret", "build/ca.pem", ".env", "archives/ucx.tar"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(BELONGS, encoding="ascii")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def tight_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


def archive(folder: Path, name: str) -> str:
    """An archive of a source as an option names it."""
    path = folder / name
    path.write_bytes(name.encode())
    return f"{path}@sha256:{hashlib.sha256(name.encode()).hexdigest()}"


def laid_out(payload: SmallPayload, folder: Path, facts: ImageFacts, wishes: Wishes) -> tuple[Component, ...]:
    folder.mkdir(parents=True)
    supplies = Supplies(folder.with_name("cache"), payload.wheelhouse)
    return lay_out(plan_injection(facts, wishes), facts, supplies, folder)


def tar_of(folder: Path) -> bytes:
    file = io.BytesIO()
    write_tar(folder, file)
    return file.getvalue()


def top_level(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def copied(folder: Path) -> set[str]:
    """The first path component of everything that the Dockerfile copies from its context."""
    text = (folder / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("COPY ") and "--from=" not in line]
    return {word.split("/")[0] for line in lines for word in line.split()[1:-1]}


def wishes_of(payload: SmallPayload, **wishes: object) -> Wishes:
    return Wishes(python=payload.python_option, **wishes)  # type: ignore[arg-type]


def test_the_context_holds_what_the_dockerfile_copies_and_nothing_else(
    payload: SmallPayload, tmp_path: Path
) -> None:
    folder = tmp_path / "context"
    laid_out(payload, folder, debian(verbs()), wishes_of(payload))
    assert top_level(folder) == {"Dockerfile", "vendor-amd64", "own-amd64"} == {"Dockerfile", *copied(folder)}


def test_every_stage_finds_its_scripts_and_archives(payload: SmallPayload, tmp_path: Path) -> None:
    folder = tmp_path / "context"
    wishes = wishes_of(
        payload,
        mpi=Mpi.SOURCE,
        openmpi=archive(tmp_path, "openmpi-4.1.9.tar.bz2"),
        ucx=archive(tmp_path, "ucx-1.20.0.tar.gz"),
        rdma=Rdma.BUNDLED,
        rdma_core=archive(tmp_path, "rdma-core-57.0.tar.gz"),
    )
    laid_out(payload, folder, bare(), wishes)
    assert {"Dockerfile", *copied(folder)} == top_level(folder)
    assert {path.name for path in (folder / "archives").iterdir()} == {
        "openmpi.tar",
        "ucx.tar",
        "rdma-core.tar",
    }
    assert (folder / "archives/ucx.tar").read_bytes() == b"ucx-1.20.0.tar.gz"
    text = (folder / "Dockerfile").read_text(encoding="utf-8")
    scripts = set(re.findall(r"/build/([a-z-]+\.sh)", text))
    assert scripts >= {"compile-mpi.sh", "compile-rdma.sh", "collect-libraries.sh", "install-packages.sh"}
    for name in scripts:
        assert (folder / "build" / name).stat().st_mode & 0o777 == 0o755


def test_nothing_of_the_current_folder_gets_into_the_context(payload: SmallPayload, tmp_path: Path) -> None:
    folder = tmp_path / "context"
    laid_out(payload, folder, debian(verbs()), wishes_of(payload, ssh=Ssh.PACKAGE))
    assert BELONGS.encode() not in tar_of(folder)
    assert not (folder / "build/ca.pem").exists()


def test_the_same_input_gives_the_same_tar_whatever_the_umask(
    payload: SmallPayload, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    wishes = wishes_of(payload, rdma=Rdma.BUNDLED, rdma_core=archive(tmp_path, "rdma-core-57.0.tar.gz"))
    laid_out(payload, tmp_path / "a/context", debian(), wishes)
    request.getfixturevalue("tight_umask")
    laid_out(payload, tmp_path / "b/context", debian(), wishes)
    assert tar_of(tmp_path / "a/context") == tar_of(tmp_path / "b/context")


def test_everything_in_the_tar_belongs_to_root_and_has_one_date(
    payload: SmallPayload, tmp_path: Path
) -> None:
    laid_out(payload, tmp_path / "context", debian(verbs()), wishes_of(payload))
    with tarfile.open(fileobj=io.BytesIO(tar_of(tmp_path / "context"))) as tar:
        members = tar.getmembers()
    assert {(each.uid, each.gid, each.uname, each.gname, each.mtime) for each in members} == {
        (0, 0, "", "", EPOCH_S)
    }
    names = [each.name for each in members]
    assert len(names) == len(set(names))
    assert "Dockerfile" in names
    assert not [name for name in names if name.startswith(("/", "./", "../"))]


def test_a_tar_tells_links_from_what_they_lead_to(tmp_path: Path) -> None:
    folder = tmp_path / "context"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep/file").touch()
    (folder / "link").symlink_to("deep")
    with tarfile.open(fileobj=io.BytesIO(tar_of(folder))) as tar:
        found = {each.name: each.linkname for each in tar.getmembers()}
    assert found == {"deep": "", "deep/file": "", "link": "deep"}


def test_the_components_are_those_of_every_stage(payload: SmallPayload, tmp_path: Path) -> None:
    wishes = wishes_of(
        payload,
        mpi=Mpi.IMAGE,
        mpi_image="team/mpi:1",
        rdma=Rdma.NONE,
        builder="mirror/debian:11",
    )
    found = set(laid_out(payload, tmp_path / "a/context", bare(), wishes))
    assert {
        Component("openmpi", "", "image", origin="team/mpi:1"),
        Component("libz.so.1", "", "image", origin="mirror/debian:11"),
        Component("libgcc_s.so.1", "", "image", origin="mirror/debian:11"),
    } <= found
    wishes = wishes_of(payload, ssh=Ssh.PACKAGE)
    found = set(laid_out(payload, tmp_path / "b/context", debian(verbs()), wishes))
    assert Component("openssh-server", "", "package") in found


def test_each_platform_has_its_two_layers(
    payload: SmallPayload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("azcp_kit.image.plan.pinned", lambda *_args, **_named: payload.python)
    folder = tmp_path / "context"
    found = laid_out(payload, folder, debian(verbs()), Wishes(arches=("amd64", "arm64")))
    assert top_level(folder) == {
        "Dockerfile",
        *(f"{layer}-{arch}" for layer in ("vendor", "own") for arch in ("amd64", "arm64")),
    }
    assert len(found) == len(set(found))
    assert {each.arch for each in found if each.name == "openmpi"} == {"amd64", "arm64"}


def test_an_archive_with_another_digest_stops_the_layout(payload: SmallPayload, tmp_path: Path) -> None:
    option = archive(tmp_path, "rdma-core-57.0.tar.gz")
    (tmp_path / "rdma-core-57.0.tar.gz").write_bytes(b"tampered with")
    with pytest.raises(DownloadError, match="rdma-core: .* has sha256"):
        laid_out(
            payload, tmp_path / "context", debian(), wishes_of(payload, rdma=Rdma.BUNDLED, rdma_core=option)
        )
