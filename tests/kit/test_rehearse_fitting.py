"""What does not fit the manifest, the engine or itself is told before anything is started."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from azcp_kit.engine import Engine
from azcp_kit.inspect.stored import StoredImage, read_stored
from azcp_kit.rehearse.account import Emulator
from azcp_kit.rehearse.fitting import expect_request, find_images
from azcp_kit.rehearse.request import Kill, RehearseRequest
from azcp_kit.rehearse.secrecy import make_censor
from azcp_runtime.contract import PreflightError, UsageError

from tests.kit.rehearsed import MAIN, plan

LAUNCH = "/opt/azcp/bin/azcp-launch"
URL = "https://exampleacct.blob.core.windows.net/models/llama/"


def job(*words: str, completions: int = 3, **container: Any) -> dict[str, Any]:  # noqa: ANN401 - of a container
    own = {**MAIN, "command": list(words) or ["/bin/true"], **container}
    spec = {"restartPolicy": "Never", "containers": [own]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"completions": completions, "parallelism": completions, "template": {"spec": spec}},
    }


@dataclass
class Files:
    """Of an image: the paths that are there."""

    paths: frozenset[str]

    def entry(self, path: str) -> object | None:
        """Anything, where there is something."""
        return path if path in self.paths else None


@dataclass
class Shelf:
    """An engine's images, by name, with the paths in each."""

    images: Mapping[str, frozenset[str]]
    probed: list[str] = field(default_factory=list)

    def image(self, reference: str, *, pull: bool) -> StoredImage:
        """The image."""
        assert not pull
        if reference not in self.images:
            raise UsageError(f"the engine has no image {reference}", remedy="pull it")
        return read_stored(reference, {"Id": f"id of {reference}", "Config": {"User": "7"}})

    @contextmanager
    def probe(self, image: StoredImage) -> Iterator[Files]:
        """Its files."""
        self.probed.append(image.identity.reference)
        yield Files(self.images[image.identity.reference])


def found(shelf: Shelf, *documents: dict[str, Any], **images: str) -> Mapping[str, str]:
    request = RehearseRequest("", images={"train:1" if key == "train" else "": images[key] for key in images})
    return {
        name: image.id
        for name, image in find_images(cast("Engine", shelf), plan(*documents), request).items()
    }


def test_all_names_that_the_manifest_has_not_are_refused_at_once() -> None:
    request = RehearseRequest(
        "", images={"foo": "x", "": "y"}, late={"late": 1.0}, kills=(Kill("killed", "start", 0),)
    )
    with pytest.raises(UsageError) as caught:
        expect_request(plan(job()), request)
    assert caught.value.what.split("; ") == [
        "--image: no container has the image foo",
        "--late: there is no pod late",
        "--kill: there is no pod killed",
    ]
    assert caught.value.remedy == "the images are train:1; the pods are j-0, j-1, j-2"


def test_names_that_the_manifest_has_are_accepted() -> None:
    kills = (Kill("j-2", "start", 0),)
    request = RehearseRequest("", images={"train:1": "x", "": "y"}, late={"j-0": 1.0}, kills=kills)
    expect_request(plan(job()), request)


def test_an_absent_image_is_told_with_the_option_that_replaces_it() -> None:
    with pytest.raises(UsageError, match="the engine has no image train:1; give --image train:1=LOCAL"):
        found(Shelf({}), job())


def test_an_image_that_was_not_built_here_is_told_with_how_to_build_it() -> None:
    with pytest.raises(PreflightError) as caught:
        found(Shelf({"base:1": frozenset()}), job(LAUNCH, URL, "/d"), train="base:1")
    assert caught.value.what == "base:1 holds no /opt/azcp, with which main begins"
    assert "azcp-kit build --base base:1 --tag NEW, then --image train:1=NEW" in str(caught.value)


def test_a_program_that_an_image_lacks_is_named() -> None:
    shelf = Shelf({"train:1": frozenset({"/opt/azcp", "/opt/azcp/bin/azcp-sshd"})})
    with pytest.raises(PreflightError, match="train:1 holds no /opt/azcp/bin/azcp-launch"):
        found(shelf, job(LAUNCH, URL, "/d"))


def test_images_are_looked_into_only_where_a_container_begins_with_a_program_of_ours() -> None:
    shelf = Shelf({"train:1": frozenset({"/opt/azcp", LAUNCH})})
    assert found(shelf, job(LAUNCH, URL, "/d")) == {"train:1": "id of train:1"}
    assert found(shelf, job()) == {"train:1": "id of train:1"}
    assert shelf.probed == ["train:1"]


def test_what_a_volume_brings_is_not_looked_for_in_the_image() -> None:
    own = job(LAUNCH, URL, "/d", volumeMounts=[{"name": "azcp", "mountPath": "/opt/azcp"}])
    own["spec"]["template"]["spec"]["volumes"] = [{"name": "azcp", "emptyDir": {}}]
    shelf = Shelf({"train:1": frozenset()})
    assert found(shelf, own)
    assert not shelf.probed


@pytest.mark.parametrize("words", [["--nodes", "4"], ["--nodes=4"], ["--nodes", "3", "--nodes", "4"]])
def test_a_number_of_nodes_that_is_not_the_manifests_is_told_before_it_is_scaled(words: list[str]) -> None:
    with pytest.raises(PreflightError, match="Job j: main says --nodes 4, but the manifest makes 16"):
        plan(job(LAUNCH, URL, "/d", *words, "--every-node", completions=16))


@pytest.mark.parametrize(
    "words",
    [
        [LAUNCH, URL, "/d", "--nodes", "16"],
        [LAUNCH, URL, "/d", "--nodes", "$(N)"],
        [LAUNCH, URL, "/d", "--", "train", "--nodes", "4"],
        ["train", "--nodes", "4"],
        ["sh", "-c", f"exec {LAUNCH} {URL} /d --nodes 16"],
    ],
)
def test_a_number_that_is_the_manifests_or_another_programs_is_left_alone(words: list[str]) -> None:
    assert plan(job(*words, completions=16)).nodes == 3


def test_a_number_in_a_shells_text_is_compared_too() -> None:
    with pytest.raises(PreflightError, match="says --nodes 4"):
        plan(job("sh", "-c", f"exec {LAUNCH} {URL} /d --nodes 4"))


def test_an_mpijobs_launcher_is_compared_with_its_workers() -> None:
    launcher = {"spec": {"containers": [{**MAIN, "command": [LAUNCH, URL, "/d", "--nodes", "3"]}]}}
    replicas = {
        "Launcher": {"template": launcher},
        "Worker": {"replicas": 2, "template": {"spec": {"containers": [MAIN]}}},
    }
    own = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "m"},
        "spec": {"mpiReplicaSpecs": replicas},
    }
    with pytest.raises(PreflightError, match="MPIJob m: main says --nodes 3, but the manifest makes 2"):
        plan(own)


def test_a_secret_is_taken_out_of_a_text_before_the_text_is_cut() -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "stringData": {"k": "very-secret-value" * 4},
    }
    censor = make_censor(plan(secret, job()), Emulator("http://x", "emulators-key"))
    text = censor("x" * 380 + "very-secret-value" * 4)
    assert text == "x" * 380 + "***"
    assert censor("a sig=abc&x emulators-key\x1b") == "a sig=***&x ***\\x1b"
