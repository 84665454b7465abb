"""Volumes hold what Kubernetes would put into them, and never anything of this machine."""

from __future__ import annotations

import io
import tarfile
from typing import Any

import pytest
from azcp_kit.rehearse.archive import files_tar, folder_tar
from azcp_kit.rehearse.environment import ContainerConfigError
from azcp_kit.rehearse.fields import Fields
from azcp_kit.rehearse.store import Store
from azcp_kit.rehearse.volumes import Sharing, Sort, Volume, VolumeFile, read_volumes, volume_files
from azcp_runtime.contract import UsageError

from tests.kit.rehearsed import MAIN, PLACE, pod

STORE = Store(
    secrets={("ml", "keys"): {"private": b"p", "public": b"q"}},
    config_maps={("ml", "settings"): {"a": b"1"}},
)


def volume(**source: Any) -> Volume:  # noqa: ANN401 - parts of a volume
    return read_volumes(Fields({"volumes": [{"name": "v", **source}]}, "spec"))["v"]


def files(store: Store = STORE, **source: Any) -> list[tuple[str, bytes, int]]:  # noqa: ANN401 - the same
    found = volume_files(volume(**source), Fields({}, "container"), PLACE, store)
    return [(file.path, file.content, file.mode) for file in found]


def members(content: bytes) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        return {member.name: member for member in tar}


def test_a_whole_secret_is_a_file_per_key() -> None:
    assert files(secret={"secretName": "keys", "defaultMode": 0o400}) == [
        ("private", b"p", 0o400),
        ("public", b"q", 0o400),
    ]


def test_items_choose_keys_paths_and_modes() -> None:
    items = [{"key": "private", "path": "ssh/id", "mode": 0o600}]
    assert files(secret={"secretName": "keys", "items": items}) == [("ssh/id", b"p", 0o600)]


def test_several_sources_are_projected_into_one_volume() -> None:
    sources = [
        {"secret": {"name": "keys", "items": [{"key": "public", "path": "pub"}]}},
        {"configMap": {"name": "settings"}},
        {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        {"serviceAccountToken": {"path": "token"}},
    ]
    assert [name for name, *_ in files(projected={"sources": sources})] == ["pub", "a", "name"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"secret": {"secretName": "none"}}, 'secret "none" not found'),
        ({"configMap": {"name": "none"}}, 'configmap "none" not found'),
        ({"secret": {"secretName": "keys", "items": [{"key": "x", "path": "x"}]}}, "non-existent key x"),
        ({"secret": {"secretName": "keys", "items": [{"key": "public", "path": "../x"}]}}, "stay within"),
        ({"secret": {"secretName": "keys", "items": [{"key": "public", "path": "/x"}]}}, "stay within"),
    ],
)
def test_what_cannot_be_mounted_is_the_kubelets_error(source: dict[str, Any], said: str) -> None:
    with pytest.raises(ContainerConfigError, match=said):
        files(**source)


def test_what_is_optional_may_be_absent() -> None:
    assert files(secret={"secretName": "none", "optional": True}) == []


def test_an_empty_dir_in_memory_has_its_limit() -> None:
    found = volume(emptyDir={"medium": "Memory", "sizeLimit": "1Gi"})
    assert (found.sort, found.size_bytes, found.mode) == (Sort.MEMORY, 1 << 30, 0o777)
    assert volume(emptyDir={}).sort is Sort.FOLDER


def test_a_host_path_is_a_folder_of_its_node_and_no_folder_of_this_machine() -> None:
    found = volume(hostPath={"path": "/mnt/nvme/", "type": "Directory"})
    assert (found.sort, found.sharing, found.key) == (Sort.FOLDER, Sharing.NODE, "/mnt/nvme")
    assert not found.is_group_owned
    assert "taken to exist" in found.notice


@pytest.mark.parametrize(
    "source",
    [
        {"path": "/"},
        {"path": "/dev/infiniband"},
        {"path": "/var/run/docker.sock", "type": "Socket"},
        {"path": "/mnt/../etc"},
        {"path": "/opt/topology.xml", "type": "File"},
        {"path": "/proc"},
    ],
)
def test_what_a_node_keeps_for_itself_is_not_mounted(source: dict[str, str]) -> None:
    assert volume(hostPath=source).sort is Sort.ABSENT


def test_a_claim_is_shared_by_all_pods_and_an_ephemeral_one_is_not() -> None:
    claim = volume(persistentVolumeClaim={"claimName": "shared"})
    assert (claim.sharing, claim.key) == (Sharing.ALL, "shared")
    assert volume(ephemeral={}).sharing is Sharing.POD
    assert "(csi)" in volume(csi={"driver": "x"}).notice


@pytest.mark.parametrize("path", ["", "relative", "/", "/a:b", "/a/../.."])
def test_a_mount_must_have_a_place(path: str) -> None:
    with pytest.raises(UsageError, match="nothing can be mounted"):
        pod({"containers": [{**MAIN, "volumeMounts": [{"name": "v", "mountPath": path}]}]})


def test_a_mount_must_name_a_volume_of_its_pod() -> None:
    with pytest.raises(UsageError, match="no volume of the pod"):
        pod({"containers": [{**MAIN, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]})


def test_a_part_of_a_volume_stays_within_it() -> None:
    mounts = [
        {"name": "v", "mountPath": "/a", "subPathExpr": "$(NODE)/data"},
        {"name": "v", "mountPath": "/b", "subPath": "../etc"},
    ]
    spec = {"volumes": [{"name": "v"}], "containers": [{**MAIN, "volumeMounts": mounts}]}
    first, second = pod(spec).main[0].mounts
    assert first.part({"NODE": "n1"}) == "n1/data"
    for mount, variables in ((second, {}), (first, {"NODE": "../.."})):
        with pytest.raises(ContainerConfigError, match="stay within"):
            mount.part(variables)


def test_files_lie_behind_links_as_the_kubelet_lays_them_out() -> None:
    found = members(files_tar("vol", [VolumeFile("ssh/id", b"x", 0o600), VolumeFile("a", b"yy")], None))
    assert found["vol/a"].linkname == "..data/a"
    assert found["vol/ssh"].linkname == "..data/ssh"
    stamp = found["vol/..data"].linkname
    assert (found[f"vol/{stamp}/ssh/id"].mode, found[f"vol/{stamp}/ssh/id"].gid) == (0o600, 0)
    assert found[f"vol/{stamp}/a"].size == 2


def test_the_group_of_a_pod_may_read_its_files_and_write_its_folders() -> None:
    found = members(files_tar("vol", [VolumeFile("id", b"x", 0o400)], 1000))
    key = next(member for name, member in found.items() if name.endswith("/id") and member.isreg())
    assert (key.mode, key.gid, key.uid) == (0o440, 1000, 0)
    folder = members(folder_tar("vol", 0o755, 1000))["vol"]
    assert (folder.mode, folder.gid) == (0o2775, 1000)
    assert members(folder_tar("vol", 0o755, None))["vol"].mode == 0o755
