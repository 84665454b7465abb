"""What the self test inside an image decides: which libraries are strangers, whether the bytes arrived."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
from pathlib import Path

import asyncssh
import pytest
from azcp_runtime.contract import PreflightError, UsageError
from azcp_runtime.contract.selftest import Status, Subject
from azcp_runtime.selftest.allowed import strangers
from azcp_runtime.selftest.answer import fail
from azcp_runtime.selftest.data import differences, make_folder
from azcp_runtime.selftest.elf import Elf, elf_files, read_elf
from azcp_runtime.selftest.intruder import intruder_problems
from azcp_runtime.selftest.libraries import Traced, loader_of, objections, parse_trace, trace
from azcp_runtime.selftest.server import speaks_ssh
from azcp_runtime.selftest.settings import rdma_kind
from azcp_runtime.selftest.trial import Surroundings, run
from azcp_runtime.selftest.watch import Watch, executable_files, role_of

MAPS = b"""\
7f00-7f01 r--p 00000000 08:01 1 /usr/lib/locale/locale-archive
7f01-7f02 r-xp 00000000 08:01 2 /usr/lib/x86_64-linux-gnu/libc.so.6
7f02-7f03 r-xp 00000000 08:01 3 /opt/lib jemalloc.so.2 (deleted)
7f03-7f04 rw-p 00000000 00:00 0 [heap]
7f04-7f05 r-xp 00000000 00:00 0 [vdso]
"""
PROGRAM = Elf("/opt/azcp/openmpi/bin/mpirun", "/lib64/ld-linux-x86-64.so.2", has_runpath=False)


def nothing_is_needed(_: str) -> tuple[str, ...]:
    return ()


def process(proc: Path, pid: int, cmdline: bytes, environ: bytes, maps: bytes) -> None:
    """A process as /proc tells it."""
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    for name, content in (("cmdline", cmdline), ("environ", environ), ("maps", maps)):
        (folder / name).write_bytes(content)


def mapped(*files: str) -> bytes:
    return b"".join(b"0-1 r-xp 0 0:0 1 %s\n" % os.fsencode(file) for file in files)


@pytest.mark.parametrize(
    "name",
    [
        *("libc.so.6", "libc-2.31.so", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "ld-2.31.so"),
        *("libpthread.so.0", "libpthread-2.31.so", "libgcc_s.so.1", "libz.so.1.2.13", "libnss_files-2.31.so"),
    ],
)
def test_the_c_librarys_own_files_are_no_strangers(name: str) -> None:
    assert strangers([f"/usr/lib/{name}"], "none") == []


@pytest.mark.parametrize(
    "file",
    [
        *(
            "/usr/lib/libmpi.so.40",
            "/opt/libjemalloc.so.2",
            "/usr/lib/libcrypto.so.3",
            "/opt/azcp-other/libx.so",
        ),
        *("/opt/azcp/../hpcx/libucp.so.0", "/usr/lib/libmagic.so.1", "/usr/lib/libc++.so.1"),
    ],
)
def test_any_other_library_of_the_base_is_a_stranger(file: str) -> None:
    assert strangers([file, "/opt/azcp/openmpi/lib/libmpi.so.40"], "base") == [file]


@pytest.mark.parametrize(
    "name", ["libibverbs.so.1", "libmlx5-rdmav34.so", "librdmacm.so.1", "libnl-3.so.200"]
)
def test_the_bases_rdma_is_a_stranger_only_where_we_bring_our_own(name: str) -> None:
    file = f"/usr/lib/{name}"
    assert strangers([file], "base") == []
    assert strangers([file], "bundled") == [file]


def test_only_what_can_be_executed_counts_as_mapped() -> None:
    assert executable_files(MAPS) == {"/usr/lib/x86_64-linux-gnu/libc.so.6", "/opt/lib jemalloc.so.2"}


def test_a_process_is_known_by_its_command_of_ours() -> None:
    rank = b"/opt/azcp/python/bin/python3\0-I\0/opt/azcp/bin/azcp-distribute\0/data\0"
    assert role_of(rank) == "azcp-distribute"
    assert role_of(b"/opt/azcp/openmpi/bin/mpirun\0-n\x002\0/opt/azcp/bin/azcp-distribute\0") == "mpirun"
    assert role_of(b"sleep\0infinity\0") == ""


def test_a_process_with_a_library_of_the_base_is_told(tmp_path: Path) -> None:
    process(tmp_path, 7, b"/opt/azcp/bin/azcp-sshd\0", b"AZCP_CLEAN=1\0", mapped("/opt/libjemalloc.so.2"))
    watch = Watch(tmp_path)
    watch.look()
    assert watch.answer("none", nothing_is_needed).found == "azcp-sshd has mapped /opt/libjemalloc.so.2"


def test_the_moment_before_the_environment_is_scrubbed_does_not_count(tmp_path: Path) -> None:
    process(tmp_path, 7, b"/opt/azcp/bin/azcp-sshd\0", b"LD_PRELOAD=x\0", mapped("/opt/libjemalloc.so.2"))
    watch = Watch(tmp_path)
    watch.look()
    assert watch.answer("none", nothing_is_needed).status is Status.OK


def test_what_was_expected_and_not_seen_is_a_failure(tmp_path: Path) -> None:
    process(
        tmp_path, 7, b"/opt/azcp/bin/azcp-distribute\0", b"AZCP_CLEAN=1\0", mapped("/opt/azcp/libmpi.so.40")
    )
    watch = Watch(tmp_path)
    watch.expect("azcp-distribute", 2, "/libmpi.so")
    watch.look()
    assert "1 of 2 processes of azcp-distribute" in watch.answer("none", nothing_is_needed).found


def test_what_a_module_of_the_name_service_needs_is_the_bases_choice(tmp_path: Path) -> None:
    files = "/usr/lib/libnss_sss.so.2", "/usr/lib/libsss_nss.so.0"
    process(tmp_path, 7, b"/opt/azcp/bin/azcp-sshd\0", b"AZCP_CLEAN=1\0", mapped(*files))
    watch = Watch(tmp_path)
    watch.look()
    assert watch.answer("none", lambda _: files[1:]).status is Status.OK


def test_the_loaders_answer_is_read_as_ldd_prints_it() -> None:
    text = (
        "\tlinux-vdso.so.1 (0x00007ffc)\n\tlibmpi.so.40 => /opt/a b/libmpi.so.40 (0x00007f)\n"
        "\tlibx.so => not found\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n"
    )
    traced = parse_trace(text)
    assert traced.paths == ("/opt/a b/libmpi.so.40", "/lib64/ld-linux-x86-64.so.2")
    assert traced.absent == ("libx.so",)


@pytest.mark.parametrize(
    ("file", "traced", "objection"),
    [
        (PROGRAM, Traced((), ("libmpi.so.40",)), "does not find libmpi.so.40"),
        (PROGRAM, Traced(("/usr/lib/libmpi.so.40",), ()), "loads /usr/lib/libmpi.so.40 of the base"),
        (PROGRAM, Traced((), (), "it is damaged"), "it is damaged"),
        (Elf(PROGRAM.path, "", has_runpath=True), Traced(("/opt/azcp/x.so",), ()), "has DT_RUNPATH"),
    ],
)
def test_a_file_that_finds_the_wrong_libraries_is_told(file: Elf, traced: Traced, objection: str) -> None:
    (found,) = objections(file, traced, "none")
    assert objection in found


def test_a_module_for_a_fabric_may_lack_its_library_unless_that_was_promised() -> None:
    traced = Traced((), ("libibverbs.so.1",))
    assert list(objections(PROGRAM, traced, "none")) == []
    assert len(list(objections(PROGRAM, traced, "bundled"))) == 1


def test_the_loader_of_a_program_is_asked_what_it_needs() -> None:
    program = os.path.realpath(sys.executable)
    loader = loader_of(program)
    assert any("libc.so" in path for path in trace(loader, program, {}).paths)


def test_no_program_has_no_loader(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("#!/bin/sh\n")
    with pytest.raises(PreflightError, match="is no program"):
        loader_of(str(tmp_path / "script"))


def test_a_file_cut_off_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "lib.so").write_bytes(b"\x7fELF\x02\x01\x01")
    with pytest.raises(PreflightError, match="damaged"):
        read_elf(str(tmp_path / "lib.so"))


def test_programs_are_found_and_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "python").write_bytes(Path(sys.executable).read_bytes())
    (tmp_path / "link").symlink_to("python")
    (tmp_path / "text").write_text("no program")
    assert [Path(elf.path).name for elf in elf_files(str(tmp_path))] == ["python"]


def test_a_copy_has_no_differences(tmp_path: Path) -> None:
    for name in ("source", "dest"):
        make_folder(tmp_path / name)
    assert list(differences(tmp_path / "source", tmp_path / "dest")) == []


def test_each_difference_is_named(tmp_path: Path) -> None:
    for name in ("source", "dest"):
        make_folder(tmp_path / name)
    dest = tmp_path / "dest"
    (dest / "empty").unlink()
    (dest / "-rf").write_text("other")
    (dest / "more").write_text("more")
    (dest / ".azcp").mkdir()
    (dest / ".azcp/journal").write_text("the runtime's own")
    found = list(differences(tmp_path / "source", dest))
    assert found == ["-rf has other bytes", "empty is missing", "more is too much"]


def test_a_command_that_does_not_end_is_ended(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "import time; print('begun', flush=True); time.sleep(600)"]
    ended = run(argv, Surroundings(tmp_path, {}), 2.0, lambda: None)
    assert (ended.code, ended.output) == (None, "begun")


def test_only_the_last_of_an_output_is_kept_and_fit_for_a_terminal(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "print('x' * 100_000 + '\\x1b[31mred')"]
    ended = run(argv, Surroundings(tmp_path, {}), 30.0, lambda: None)
    assert ended.code == 0
    assert len(ended.output) < 3000
    assert ended.output.endswith("\\x1b[31mred")


def test_many_problems_are_counted() -> None:
    assert fail(Subject.SSHD, map(str, range(8)), "").found == "0; 1; 2; 3; 4; 5; and 2 more"


def test_the_settings_tell_where_rdma_comes_from(tmp_path: Path) -> None:
    settings = tmp_path / "image.toml"
    settings.write_text('ssh = "bundled"\nrdma = "none"\n')
    assert rdma_kind(settings) == "none"
    settings.write_text("rdma = ")
    with pytest.raises(UsageError, match="damaged"):
        rdma_kind(settings)


class Careless(asyncssh.SSHServer):
    """A server that takes what it should not."""

    def __init__(self, *, password: bool, nothing: bool) -> None:
        self._password = password
        self._nothing = nothing

    def begin_auth(self, username: str) -> bool:  # noqa: ARG002
        """Whether a login is needed at all."""
        return not self._nothing

    def kbdint_auth_supported(self) -> bool:
        """Another way to ask for the password, which asyncssh offers by itself."""
        return False

    def password_auth_supported(self) -> bool:
        """Whether passwords are asked for."""
        return self._password

    def validate_password(self, username: str, password: str) -> bool:  # noqa: ARG002
        """An empty one will do."""
        return not password


async def try_server(*, password: bool, nothing: bool) -> list[str]:
    """What somebody without the job's key reaches."""
    server = await asyncssh.create_server(
        lambda: Careless(password=password, nothing=nothing),
        "127.0.0.1",
        0,
        server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
    )
    try:
        return await intruder_problems("127.0.0.1", server.get_port())
    finally:
        server.close()


@pytest.mark.parametrize(
    ("password", "nothing", "problems"),
    [
        (True, False, ["it lets in by a password"]),
        (False, True, ["another key is let in", "it lets in by nothing at all"]),
        (False, False, []),
    ],
)
def test_a_server_that_lets_others_in_is_told(password: bool, nothing: bool, problems: list[str]) -> None:
    assert asyncio.run(try_server(password=password, nothing=nothing)) == problems


class _Door:
    """A port of this machine whose visitors are told `greeting`."""

    def __init__(self, greeting: bytes) -> None:
        self._greeting = greeting

    def __enter__(self) -> int:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._greet)
        self._thread.start()
        return int(self._socket.getsockname()[1])

    def __exit__(self, *_: object) -> None:
        self._thread.join()
        self._socket.close()

    def _greet(self) -> None:
        visitor, _ = self._socket.accept()
        with visitor:
            visitor.sendall(self._greeting)


@pytest.mark.parametrize(
    ("greeting", "is_ssh"),
    [(b"SSH-2.0-AsyncSSH\r\n", True), (b"", False), (b"SS", False), (b"HTTP/1.1 400", False)],
)
def test_a_server_answers_once_it_speaks_ssh(greeting: bytes, is_ssh: bool) -> None:
    with _Door(greeting) as port:
        assert speaks_ssh("127.0.0.1", port) is is_ssh


def test_a_connection_to_itself_is_no_server() -> None:
    # The kernel may give a knock the very port it knocks at as its near end, and the two then meet.
    with socket.socket() as alone:
        alone.bind(("127.0.0.1", 0))
        alone.connect(alone.getsockname())
        assert alone.getpeername() == alone.getsockname()
        port = alone.getsockname()[1]
        assert not speaks_ssh("127.0.0.1", port)
    assert not speaks_ssh("127.0.0.1", port)
