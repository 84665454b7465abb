"""azcp-kit tree brings /opt/azcp out of an image, and leaves nothing behind."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from docker import DockerClient

from tests.lab.containers import labels
from tests.lab.tree_tar import TREE, Entry, chunks

KIT = Path(sys.prefix, "bin", "azcp-kit")
ABOVE: Entry = ("opt", tarfile.DIRTYPE, 0o755, b"")
SETTINGS: Entry = ("opt/azcp/etc/image.toml", tarfile.REGTYPE, 0o644, b'ssh = "base"\nrdma = "bundled"\n')


def kit(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([KIT, "tree", *words], capture_output=True, timeout=60, check=False)


@contextmanager
def image_of(docker: DockerClient, *entries: Entry) -> Iterator[str]:
    """An image of these files, which does not outlive the block."""
    context = io.BytesIO()
    layer = b"".join(chunks(*entries))
    with tarfile.open(fileobj=context, mode="w") as tar:
        for name, content in (("Dockerfile", b"FROM scratch\nADD layer.tar /\n"), ("layer.tar", layer)):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    context.seek(0)
    image, _ = docker.images.build(
        fileobj=context, custom_context=True, labels=labels(), rm=True, forcerm=True
    )
    try:
        yield str(image.id)
    finally:
        docker.images.remove(str(image.id), force=True)


@pytest.fixture(scope="module")
def image(docker: DockerClient) -> Iterator[str]:
    """One with a tree."""
    below = [
        (f"opt/{name}", kind, mode, f"opt/{to}" if kind == tarfile.LNKTYPE and isinstance(to, str) else to)
        for name, kind, mode, to in TREE
    ]
    with image_of(docker, ABOVE, *below, SETTINGS) as made:
        yield made


def test_a_folder_gets_all_of_it_again_and_again(docker: DockerClient, image: str, tmp_path: Path) -> None:
    before = {container.id for container in docker.containers.list(all=True)}
    for _ in range(2):
        done = kit(image, "-o", str(tmp_path / "azcp"))
        assert (done.returncode, done.stdout) == (0, b""), done.stderr
    assert b"have it at /opt/azcp on every node, bound or copied" in done.stderr
    assert b"ssh is the image's own and stays there" in done.stderr
    assert b"rdma" not in done.stderr
    names = {entry[0] for entry in TREE} | {"azcp/etc", "azcp/etc/image.toml"}
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")} == names
    assert (tmp_path / "azcp/bin/again").samefile(tmp_path / "azcp/bin/azcp-launch")
    assert {container.id for container in docker.containers.list(all=True)} <= before


@pytest.mark.parametrize("to_file", [True, False])
def test_a_tar_of_it_is_what_tar_unpacks(image: str, tmp_path: Path, to_file: bool) -> None:
    done = kit(image, "-o", str(tmp_path / "azcp.tar") if to_file else "-")
    assert done.returncode == 0, done.stderr
    data = (tmp_path / "azcp.tar").read_bytes() if to_file else done.stdout
    subprocess.run(["tar", "-x", "-C", tmp_path], input=data, check=True)
    assert (tmp_path / "azcp/bin/azcp-launch").read_bytes() == b"#!/opt/azcp/python"


def test_an_image_without_one_and_a_place_that_is_taken_are_refused(
    docker: DockerClient, image: str, tmp_path: Path
) -> None:
    with image_of(docker, ABOVE) as bare:
        done = kit(bare, "-o", str(tmp_path / "azcp"))
    assert done.returncode == 2
    assert b"inject it with `azcp-kit build` first" in done.stderr
    (tmp_path / "a.tar").touch()
    for place in (tmp_path, tmp_path / "a.tar"):
        assert kit(image, "-o", str(place)).returncode == 2
    assert kit(image, "-o", str(tmp_path / "azcp"), "--arch", "s390x").returncode == 2
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar"]
