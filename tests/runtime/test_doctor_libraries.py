"""What azcp-doctor says of UCX, libibverbs and the transport, and that their crashes are not its own."""

from __future__ import annotations

import struct
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from azcp_runtime.doctor.check import Status
from azcp_runtime.doctor.libraries import (
    Stack,
    UcxAnswer,
    VerbsAnswer,
    ask_ucx,
    ask_verbs,
    find_stack,
    parse_transports,
)
from azcp_runtime.doctor.providers import check_providers
from azcp_runtime.doctor.transport import check_transport, mapped_libmpi, mapped_libucp, pml_name
from azcp_runtime.rails.devices import Device, Devices, Port

CONTEXT = """#
# UCP context
#
#     component 0  :  self
#
#            md 0  :  component 0  self
#
#      resource 0  :  md 0  dev 0  flags -- self/memory
#      resource 1  :  md 1  dev 1  flags -- tcp/eth0
#      resource 6  :  md 5  dev 4  flags -- rc_mlx5/mlx5_ib0:1
#
"""
PORT = Port("mlx5_ib0:1", "ACTIVE", "InfiniBand", "400 Gb/sec (4X NDR)", None)
DEVICES = Devices(
    has_folder=True,
    devices=(Device("mlx5_ib0", "mlx5_core", 0, is_front_network=False, refusal="", ports=(PORT,)),),
)
NO_DEVICES = Devices(has_folder=False, devices=())
OWN = ("/opt/azcp/openmpi/lib/libibverbs.so.1", "/opt/azcp/openmpi/lib/libibverbs/libmlx5-rdmav34.so")
VERBS = VerbsAnswer(("mlx5_ib0",), OWN, (), "", "")
RDMA = UcxAnswer("1.18.1", (("tcp", "eth0"), ("rc_mlx5", "mlx5_ib0:1"), ("ud_mlx5", "mlx5_ib0:1")), "")
TCP = UcxAnswer("1.18.1", (("tcp", "eth0"),), "")


def program(text: str) -> tuple[str, ...]:
    """A child that does something else than asking."""
    return (sys.executable, "-c", text)


def component(project: bytes, kind: bytes, name: bytes) -> bytes:
    """The head of an mca_base_component_t."""
    three = struct.pack("<3i", 4, 1, 8)
    return three + project.ljust(16, b"\0") + three + kind.ljust(32, b"\0") + three + name.ljust(64, b"\0")


def test_transports_are_read_from_what_ucx_prints_of_itself() -> None:
    assert parse_transports(CONTEXT) == (("self", "memory"), ("tcp", "eth0"), ("rc_mlx5", "mlx5_ib0:1"))


def test_the_ucx_of_this_environment_answers() -> None:
    answer = ask_ucx(find_stack({}))
    assert answer.error == ""
    assert "tcp" in {transport for transport, _ in answer.transports}
    assert answer.version.count(".") == 2


def test_the_ucx_beside_the_library_that_a_run_loads_comes_first(tmp_path: Path) -> None:
    for folder in ("a/lib/openmpi", "b/lib"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "libucp.so.0").touch()
    prefixes = [tmp_path / "a"]
    assert find_stack({}, prefixes).ucp == tmp_path / "a/lib/openmpi/libucp.so.0"
    env = {"MPI4PY_LIBMPI": str(tmp_path / "b/lib/libmpi.so.40")}
    assert find_stack(env, prefixes).ucp == tmp_path / "b/lib/libucp.so.0"
    assert find_stack({}, [tmp_path]).ucp is None


def test_a_ucx_that_the_process_has_loaded_already_is_the_one_that_is_asked(tmp_path: Path) -> None:
    modules = tmp_path / "ucx"
    modules.mkdir()
    (modules / "libuct_ib.so.0").touch()
    maps = f"7f00-7f01 r-xp 00000000 08:01 7    {tmp_path}/libucp.so.0\n"
    found = find_stack({}, loaded=mapped_libucp(maps))
    assert (found.ucp, found.modules) == (tmp_path / "libucp.so.0", (modules / "libuct_ib.so.0",))
    assert mapped_libucp("7f00-7f01 r-xp 00000000 08:01 7    /lib/libc.so.6\n") is None


def test_a_prefix_without_ucx_is_said_so() -> None:
    assert ask_ucx(Stack(None, ())).error == "there is no UCX beside the MPI library"


def test_a_library_that_cannot_be_loaded_says_why() -> None:
    answer = ask_ucx(Stack(Path("/nowhere/libucp.so.0"), ()))
    assert "/nowhere/libucp.so.0" in answer.error


def test_verbs_are_asked_or_the_reason_is_told() -> None:
    answer = ask_verbs(find_stack({}))
    assert bool(answer.error) != any("libibverbs" in path for path in answer.libraries)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "it crashes (SIGSEGV)"),
        ("raise SystemExit(3)", "it ends the process with code 3"),
        ("print('UCX  WARN  no such thing')", "it ends the process with code 0"),
        ("print('[]')", "it ends the process with code 0"),
    ],
)
def test_a_library_that_takes_its_process_with_it_is_told(text: str, error: str) -> None:
    stack = Stack(Path("libucp.so.0"), ())
    assert ask_ucx(stack, program(text)).error == error
    assert ask_verbs(stack, program(text)).error == error


def test_a_library_that_hangs_is_given_up() -> None:
    answer = ask_ucx(Stack(Path("libucp.so.0"), ()), program("import signal; signal.pause()"), 0.2)
    assert answer.error == "no answer within 0.2 s"


def test_a_librarys_own_lines_before_the_answer_do_no_harm() -> None:
    child = program('print(\'UCX  WARN  x\'); print(\'{"version": "1.2.3", "error": "a\\\\u001b[1m"}\')')
    answer = ask_ucx(Stack(Path("libucp.so.0"), ()), child)
    assert answer.version == "1.2.3"
    assert "\x1b" not in answer.error


def test_a_provider_for_each_device_is_good() -> None:
    check = check_providers(VERBS, DEVICES, is_required=True)
    assert check.status is Status.OK
    assert check.found == f"{OWN[0]} has one for mlx5_ib0"


def test_a_device_without_a_provider_is_named_with_the_librarys_warning() -> None:
    verbs = replace(VERBS, devices=(), warnings="couldn't load driver 'libmlx5-rdmav34.so'")
    check = check_providers(verbs, DEVICES, is_required=True)
    assert check.status is Status.FAIL
    assert "no provider for mlx5_ib0 (couldn't load driver" in check.found
    assert check_providers(verbs, DEVICES, is_required=False).status is Status.WARN


def test_missing_libraries_matter_only_with_a_device_or_where_rdma_is_required() -> None:
    nothing = VerbsAnswer((), (), (), "libibverbs.so.1: cannot open shared object file", "")
    assert check_providers(nothing, NO_DEVICES, is_required=False).status is Status.OK
    assert check_providers(nothing, NO_DEVICES, is_required=True).status is Status.FAIL
    assert check_providers(nothing, DEVICES, is_required=False).status is Status.WARN


def test_a_module_that_lacks_libmlx5_is_told() -> None:
    verbs = replace(VERBS, errors=("libmlx5.so.1: cannot open shared object file",))
    assert "libmlx5.so.1" in check_providers(verbs, DEVICES, is_required=True).found


def test_libraries_of_two_releases_are_warned_of() -> None:
    verbs = replace(VERBS, libraries=(OWN[0], "/usr/lib/x86_64-linux-gnu/libmlx5.so.1"))
    check = check_providers(verbs, DEVICES, is_required=True)
    assert check.status is Status.WARN
    assert "/opt/azcp/openmpi/lib, /usr/lib/x86_64-linux-gnu" in check.found


def test_rdma_that_mpi_has_chosen_is_good() -> None:
    check = check_transport("ucx", RDMA, is_required=True)
    assert (check.status, check.found) == (
        Status.OK,
        "it is UCX 1.18.1: rc_mlx5, ud_mlx5 on mlx5_ib0:1",
    )
    assert check_transport("", RDMA, is_required=True).found.startswith("it would be UCX")


@pytest.mark.parametrize("pml", ["", "ob1", "ucx"])
def test_tcp_warns_and_fails_where_rdma_is_required(pml: str) -> None:
    assert check_transport(pml, TCP, is_required=False).status is Status.WARN
    assert check_transport(pml, TCP, is_required=True).status is Status.FAIL


def test_mpi_that_passes_rdma_by_is_told() -> None:
    check = check_transport("ob1", RDMA, is_required=True)
    assert check.status is Status.FAIL
    assert check.found.startswith("Open MPI chose ob1, although UCX has rc_mlx5")


def test_rdma_that_cannot_be_opened_points_to_the_memory_limit() -> None:
    check = check_transport("ob1", replace(RDMA, error="Input/output error"), is_required=True)
    assert "cannot open it: Input/output error" in check.found
    assert "memlock" in check.remedy


def test_the_chosen_layer_is_read_only_from_what_is_one() -> None:
    assert pml_name(component(b"ompi", b"pml", b"ucx")) == "ucx"
    assert pml_name(component(b"ompi", b"btl", b"tcp")) == ""
    assert pml_name(bytes(160)) == ""


def test_the_mpi_library_of_a_process_is_found_in_its_maps() -> None:
    maps = "7f00-7f01 r-xp 0 00:00 0 \n7f01-7f02 r-xp 0 fe:00 7 /opt/azcp/openmpi/lib/libmpi.so.40\n"
    assert mapped_libmpi(maps) == "/opt/azcp/openmpi/lib/libmpi.so.40"
    assert mapped_libmpi("") is None
