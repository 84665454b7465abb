"""azcp-kit inspect tells what is in real images, runs nothing of them and leaves nothing behind."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from azcp_kit.engine import PROBE_LABEL, connected
from azcp_kit.inspect.facts import LibcKind, MpiKind, PackageKind
from azcp_kit.inspect.facts_json import from_json
from azcp_kit.inspect.files import ImageTree
from azcp_kit.inspect.gather import inspect_image
from azcp_runtime.contract import ExitCode, PreflightError, UsageError
from docker import DockerClient

from tests.lab.bases import Bases
from tests.lab.containers import labels
from tests.lab.waiting import wait_until

KIT = Path(sys.prefix, "bin", "azcp-kit")
DEADLINE_S = 30.0
# A removal waits a minute for an engine that is still sending; what is closed in time takes a moment.
PROMPT_S = 20.0


def kit(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([KIT, *arguments], capture_output=True, text=True, check=False, timeout=60)


@contextmanager
def built(docker: DockerClient, base: str, lines: Sequence[str]) -> Iterator[str]:
    """An image with these lines on top of the base, which does not outlive the block."""
    dockerfile = "\n".join([f"FROM {base}", *lines]).encode()
    image, _ = docker.images.build(fileobj=io.BytesIO(dockerfile), labels=labels(), rm=True, forcerm=True)
    try:
        yield str(image.id)
    finally:
        docker.images.remove(str(image.id), force=True)


def probes(docker: DockerClient) -> set[str]:
    found = docker.api.containers(all=True, filters={"label": PROBE_LABEL})
    return {container["Id"] for container in found}


@pytest.fixture(autouse=True)
def nothing_is_left(docker: DockerClient) -> Iterator[None]:
    before = probes(docker), {volume.id for volume in docker.volumes.list()}
    yield
    assert probes(docker) <= before[0]
    assert {volume.id for volume in docker.volumes.list()} <= before[1]


@pytest.mark.parametrize(
    ("name", "version"), [("debian11", "2.31"), ("debian12", "2.36"), ("debian13", "2.41")]
)
def test_a_debian_has_its_own_glibc_and_apt(bases: Bases, name: str, version: str) -> None:
    facts = inspect_image(bases(name))
    assert (facts.libc.kind, facts.libc.version) == (LibcKind.GLIBC, version)
    assert (facts.system.id, facts.packages.kind, facts.shells[:1]) == (
        "debian",
        PackageKind.APT,
        ("/bin/sh",),
    )


def test_both_mpis_of_the_hostile_base_are_found_with_what_leaks(bases: Bases) -> None:
    facts = inspect_image(bases("hostile"))
    found = [(mpi.kind, mpi.version, mpi.prefix, mpi.launcher) for mpi in facts.mpis]
    assert found == [
        (MpiKind.HPC_X, "4.1.7", "/opt/hpcx/ompi", "/opt/hpcx/ompi/bin/mpirun"),
        (MpiKind.OPEN_MPI, "4.1.4", "/usr", "/usr/bin/mpirun"),
    ]
    assert {"OPAL_PREFIX", "LD_LIBRARY_PATH", "LD_PRELOAD", "UCX_TLS"} <= {leak.name for leak in facts.leaks}
    assert "mlx5" in facts.verbs.providers


def test_an_image_without_a_shell_is_inspected_like_any_other(bases: Bases) -> None:
    facts = inspect_image(bases("noshell"))
    assert (facts.shells, facts.libc.version) == ((), "2.36")


def test_the_user_of_an_image_is_looked_up_in_it(bases: Bases) -> None:
    account = inspect_image(bases("user1000")).account
    assert (account.uid, account.name, account.home) == (1000, "trainer", "/home/trainer")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("alpine", "musl"),
        ("busybox", "no glibc"),
        ("oldglibc", "its glibc is 2.12"),
        ("wrongarch", "compiled for amd64"),
    ],
)
def test_a_base_that_cannot_be_injected_is_shown_and_refused(bases: Bases, name: str, reason: str) -> None:
    done = kit("inspect", bases(name))
    assert (done.returncode, done.stderr.count("\n")) == (ExitCode.PREFLIGHT, 1)
    assert reason in done.stderr
    assert "C library" in done.stdout
    assert "Plan" not in done.stdout


def test_the_facts_are_printed_and_written_as_the_same_json(bases: Bases, tmp_path: Path) -> None:
    done = kit("inspect", bases("debian12"), "--json", "--facts", str(tmp_path / "facts.json"))
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "facts.json").read_text() == done.stdout
    assert from_json(done.stdout).system.codename == "bookworm"
    assert json.loads(done.stdout)["conclusion"]["refused"] == []


def test_the_table_ends_with_the_plan(bases: Bases) -> None:
    done = kit("inspect", bases("debian12"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "\nPlan\n" in done.stdout


def test_nothing_of_the_image_is_started(docker: DockerClient, bases: Bases) -> None:
    since = int(time.time()) - 1
    with connected() as engine, engine.probe(engine.image(bases("swallows"))) as files:
        assert ImageTree(files).is_program("/entrypoint")
        chosen: dict[str, str | list[str] | bool] = {"label": PROBE_LABEL, "ancestor": bases("swallows")}
        (probe,) = docker.containers.list(all=True, filters=chosen)
        assert (probe.status, probe.attrs["HostConfig"]["NetworkMode"]) == ("created", "none")
    started = {"container": probe.id, "event": "start"}
    assert list(docker.events(since=since, until=int(time.time()) + 1, filters=started)) == []


def test_a_volume_of_the_image_is_neither_made_nor_hidden(docker: DockerClient, bases: Bases) -> None:
    with built(docker, bases("debian12"), ["VOLUME /etc /usr/share"]) as image:
        assert inspect_image(image).system.id == "debian"


def test_the_removal_does_not_wait_for_what_was_not_read(bases: Bases) -> None:
    begun = time.monotonic()
    with connected() as engine, engine.probe(engine.image(bases("debian12"))) as files:
        assert len(files.read("/usr/lib/x86_64-linux-gnu/libc.so.6", 10)) == 10
        assert "bin" in files.names("/usr")
    assert time.monotonic() - begun < PROMPT_S


def test_a_path_that_no_file_can_have_is_nothing(bases: Bases) -> None:
    with connected() as engine, engine.probe(engine.image(bases("debian12"))) as files:
        image = ImageTree(files)
        for path in ("/etc/passwd/x", "/nothing/x", "/" + "n" * 300, "/a\nb", "/%2e%2e/x", "/etc/\ud800"):
            assert not image.exists(path)


def test_links_of_the_image_that_go_in_circles_are_nothing(docker: DockerClient, bases: Bases) -> None:
    commands = ["RUN ln -s b /a && ln -s a /b && ln -s /proc/self/root/etc /c && mkfifo /pipe"]
    with (
        built(docker, bases("debian12"), commands) as name,
        connected() as engine,
        engine.probe(engine.image(name)) as files,
    ):
        image = ImageTree(files)
        assert [image.resolve(path) for path in ("/a", "/a/x", "/c")] == [None, None, None]
        assert image.read("/pipe", 10) == b""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_leaves_no_container_behind(docker: DockerClient, bases: Bases, number: int) -> None:
    before = probes(docker)
    process = subprocess.Popen(
        [KIT, "inspect", bases("hostile")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_until(lambda: probes(docker) > before or process.poll() is not None, DEADLINE_S, "a probe is made")
    process.send_signal(number)
    process.wait(DEADLINE_S)
    wait_until(lambda: probes(docker) <= before, DEADLINE_S, "the probe is gone")


def test_an_image_that_is_absent_is_told_with_what_to_do(docker: DockerClient) -> None:
    assert docker.ping()
    with pytest.raises(UsageError, match="no image nothing:here") as caught:
        inspect_image("nothing:here")
    assert "--pull" in caught.value.remedy


@pytest.mark.parametrize("reference", ["", " ", "UPPER", "a b", "x@sha256:12", "\x1b[31m", "\udcff"])
def test_a_name_that_no_image_can_have_is_a_usage_error(docker: DockerClient, reference: str) -> None:
    assert docker.ping()
    with pytest.raises(UsageError) as caught:
        inspect_image(reference)
    assert str(caught.value).isprintable()


def test_a_registry_that_cannot_be_reached_fails_the_pull(docker: DockerClient) -> None:
    assert docker.ping()
    with pytest.raises(PreflightError, match="cannot be pulled"):
        inspect_image("localhost:1/nothing:here", pull=True)


def test_an_engine_that_does_not_answer_is_told_in_one_line(tmp_path: Path) -> None:
    env = os.environ | {"DOCKER_HOST": f"unix://{tmp_path}/none.sock"}
    done = subprocess.run(
        [KIT, "inspect", "x"], env=env, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (ExitCode.PREFLIGHT, "")
    assert done.stderr.startswith("azcp-kit: no Docker engine answers")
    assert done.stderr.count("\n") == 1
