"""Mounts and images in the words of pyxis, enroot and Apptainer: read back as they were, or refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from azcp_kit.quoting.image_uri import apptainer_uri, enroot_uri, pinned_image
from azcp_kit.quoting.mounts import apptainer_bind, enroot_mount, pyxis_mount
from azcp_runtime.contract import UsageError
from hypothesis import given
from hypothesis import strategies as st

from tests.lab.slurm_tools import apptainer, enroot, pyxis
from tests.lab.slurm_tools.root import Bind

Write = Callable[[str, str, Sequence[str]], str]
Read = Callable[[str], Bind]
TOOLS: dict[str, tuple[Write, Read]] = {
    "pyxis": (pyxis_mount, pyxis.read_mount),
    "enroot": (enroot_mount, enroot.read_mount),
    "Apptainer": (apptainer_bind, lambda text: apptainer.read_binds(text)[0]),
}
PATHS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).map(
    "/{}".format
)
EASY = st.text(st.sampled_from("ab c:,'\"\\$#\n"), min_size=1, max_size=8).map("/{}".format)
DIGEST = "ab" * 32


@given(PATHS | EASY, PATHS | EASY, st.sampled_from(sorted(TOOLS)))
def test_a_mount_is_read_back_as_it_was_or_refused(source: str, target: str, name: str) -> None:
    write, read = TOOLS[name]
    told = ""
    try:
        text = write(source, target, ["ro", "nosuid"])
    except UsageError as error:
        told = str(error)
    if told:
        assert f"which no mount of {name} can carry" in told
        return
    bind = read(text)
    assert (bind.source, bind.target, list(bind.flags)[-2:]) == (source, target, ["ro", "nosuid"])


def test_pyxis_takes_a_list_of_them() -> None:
    entries = [pyxis_mount("/a", "/b", ["ro"]), pyxis_mount("/c", "/d")]
    options = pyxis.parse([f"--container-mounts={','.join(entries)}"])
    assert [pyxis.read_mount(entry) for entry in options["mounts"].split(",")] == [
        Bind("/a", "/b", ["ro"]),
        Bind("/c", "/d", []),
    ]


@pytest.mark.parametrize(
    ("name", "uri", "sif"),
    [
        ("nginx", "docker://nginx", "docker://nginx"),
        ("team/app:1", "docker://team/app", "docker://team/app"),
        ("r.io/team/app", "docker://r.io#team/app", "docker://r.io/team/app"),
        ("localhost/app", "docker://localhost#app", "docker://localhost/app"),
        ("r:5000/a/b/c:v1", "docker://r:5000#a/b/c", "docker://r:5000/a/b/c"),
    ],
)
def test_the_registry_of_an_image_is_set_apart(name: str, uri: str, sif: str) -> None:
    image = pinned_image(f"{name}@sha256:{DIGEST}")
    assert enroot_uri(image) == f"{uri}:sha256:{DIGEST}"
    assert apptainer_uri(image) == f"{sif}@sha256:{DIGEST}"
    assert image.file_stem == f"{image.path.split('/')[-1]}-{DIGEST}"


@pytest.mark.parametrize(
    "name", ["app", "app:1", "app@sha256:12", f"r.io/App@sha256:{DIGEST}", f"@sha256:{DIGEST}"]
)
def test_an_image_that_may_change_or_is_none_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        pinned_image(name)
