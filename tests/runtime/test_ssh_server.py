"""The bundled server lets the job's key in, runs commands, and offers nothing else."""

from __future__ import annotations

import asyncio
import signal
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import asyncssh
import pytest
from azcp_runtime.contract import PreflightError
from azcp_runtime.ssh.client import Peer, RefusedError, connect
from azcp_runtime.ssh.keys import find_keys

from tests.lab.processes import processes_with
from tests.lab.ssh import DEADLINE_S, LOCAL, Node, call, calling, make_keys, node
from tests.lab.waiting import wait_until

BASE = {"OPAL_PREFIX": "/of/the/base", "LAB_WORDS": "two words"}


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Node]:
    """A node of the job."""
    with node(tmp_path / "node", make_keys(tmp_path / "keys"), BASE) as running:
        yield running


def with_connection(
    there: Node, use: Callable[[asyncssh.SSHClientConnection], Awaitable[None]], keys: Path | None = None
) -> None:
    """Log in as azcp-ssh does, and do something else."""

    async def run() -> None:
        known = find_keys({}, None, str(keys or there.keys))
        async with await connect(Peer(LOCAL, there.port, "x"), known, DEADLINE_S) as connection:
            await use(connection)

    asyncio.run(run())


def test_output_errors_and_exit_status_come_back(there: Node) -> None:
    ended = call(there, LOCAL, "echo out; echo err >&2; exit 7")
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, b"out\n", b"err\n")


def test_input_goes_through_whole(there: Node) -> None:
    content = bytes(range(256)) * 4096
    assert call(there, LOCAL, "cat", stdin=content).stdout == content


def test_no_output_is_lost_when_the_command_ends(there: Node) -> None:
    ended = call(there, LOCAL, "head -c 8388608 /dev/zero; exit 3")
    assert (ended.returncode, len(ended.stdout)) == (3, 8388608)


def test_a_command_has_the_containers_environment_and_folder(there: Node) -> None:
    ended = call(there, LOCAL, 'echo "$OPAL_PREFIX $LAB_WORDS"; pwd')
    assert ended.stdout.decode() == f"/of/the/base two words\n{Path.cwd()}\n"


def test_the_end_by_a_signal_comes_back_as_a_shell_says_it(there: Node) -> None:
    assert call(there, LOCAL, "kill -KILL $$").returncode == 137


def test_a_program_that_is_not_there_is_told(there: Node) -> None:
    ended = call(there, LOCAL, "/opt/azcp/bin/no-such-program")
    assert ended.returncode == 127
    assert b"No such file" in ended.stderr


def test_another_key_is_refused_by_the_caller_and_by_the_server(there: Node, tmp_path: Path) -> None:
    stranger = make_keys(tmp_path / "stranger")
    ended = call(there, LOCAL, "true", keys=stranger)
    assert ended.returncode == 255
    assert b"127.0.0.1 has a host key that the job's key has not signed" in ended.stderr

    async def intrude() -> None:
        key = asyncssh.read_private_key(stranger / "ssh-privatekey")
        await asyncssh.connect(
            LOCAL, there.port, username="x", client_keys=[key], known_hosts=None, config=None
        )

    with pytest.raises(asyncssh.PermissionDenied):
        asyncio.run(intrude())


def test_a_key_that_the_node_does_not_list_is_told_as_such(tmp_path: Path) -> None:
    keys = make_keys(tmp_path / "keys")
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key()
    (keys / "authorized_keys").write_bytes(other)
    with (
        node(tmp_path / "node", keys) as there,
        pytest.raises(RefusedError, match="does not take the job's key"),
    ):
        with_connection(there, _nothing)


def test_there_is_no_password_to_guess(there: Node) -> None:
    async def methods() -> None:
        options = {"username": "x", "password": "x", "client_keys": None, "known_hosts": None, "config": None}
        await asyncssh.connect(LOCAL, there.port, preferred_auth="password,keyboard-interactive", **options)

    with pytest.raises(asyncssh.PermissionDenied):
        asyncio.run(methods())


async def _shell(connection: asyncssh.SSHClientConnection) -> None:
    ended = await connection.run(check=False)
    assert ended.exit_status == 127


async def _terminal(connection: asyncssh.SSHClientConnection) -> None:
    with pytest.raises(asyncssh.ChannelOpenError):
        await connection.run("true", term_type="xterm")


async def _files(connection: asyncssh.SSHClientConnection) -> None:
    with pytest.raises(asyncssh.ChannelOpenError):
        await connection.start_sftp_client()


async def _tunnel(connection: asyncssh.SSHClientConnection) -> None:
    with pytest.raises(asyncssh.ChannelOpenError):
        await connection.open_connection(LOCAL, 1)


async def _listen(connection: asyncssh.SSHClientConnection) -> None:
    with pytest.raises(asyncssh.ChannelListenError):
        await connection.start_server(lambda *_where: False, "", 0)


async def _nothing(connection: asyncssh.SSHClientConnection) -> None:
    """The login is enough."""


@pytest.mark.parametrize("use", [_shell, _terminal, _files, _tunnel, _listen])
def test_nothing_but_commands_is_offered(
    there: Node, use: Callable[[asyncssh.SSHClientConnection], Awaitable[None]]
) -> None:
    with_connection(there, use)
    assert there.process.poll() is None


def test_an_rsa_key_serves_as_well(tmp_path: Path) -> None:
    with node(tmp_path / "node", make_keys(tmp_path / "keys", "ssh-rsa")) as there:
        assert call(there, LOCAL, "exit 3").returncode == 3


def test_a_host_key_of_known_hosts_is_trusted_without_a_certificate(tmp_path: Path) -> None:
    keys = make_keys(tmp_path / "keys")
    public_only = tmp_path / "public"
    public_only.mkdir()
    (public_only / "authorized_keys").write_bytes((keys / "ssh-publickey").read_bytes())
    with node(tmp_path / "node", public_only) as there:
        assert there.says("not signed")
        assert call(there, LOCAL, "true", keys=keys).returncode == 255
        host_key = (there.state / "keys/host_key.pub").read_bytes()
        (keys / "known_hosts").write_bytes(f"[{LOCAL}]:{there.port} ".encode() + host_key)
        assert call(there, LOCAL, "exit 4", keys=keys).returncode == 4


def test_a_connection_that_speaks_no_ssh_harms_nobody(there: Node) -> None:
    for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"SSH-2.0-x\r\n" + b"\xff" * 4096, b""):
        with socket.create_connection((LOCAL, there.port)) as connection:
            connection.sendall(garbage)
    assert call(there, LOCAL, "exit 3").returncode == 3


def test_a_signal_reaches_the_whole_group(there: Node, tmp_path: Path) -> None:
    async def interrupt(connection: asyncssh.SSHClientConnection) -> None:
        ready = tmp_path / "ready"
        script = f"trap 'exit 9' TERM; touch {ready}; sleep 60 & wait"
        process = await connection.create_process(script)
        process.stdin.write_eof()  # mpirun closes it, and signals must arrive none the less
        await asyncio.to_thread(wait_until, ready.exists, DEADLINE_S, "the command runs")
        process.send_signal("TERM")
        assert (await process.wait()).exit_status == 9

    with_connection(there, interrupt)


def test_what_a_command_has_started_ends_with_its_connection(there: Node) -> None:
    mark = f"of-{there.port}"
    with calling(there, LOCAL, f"LAB_MARK={mark}; export LAB_MARK; sleep 60 & sleep 60") as caller:
        wait_until(lambda: len(list(processes_with("LAB_MARK", mark))) == 2, DEADLINE_S, "two commands sleep")
        caller.kill()
    wait_until(lambda: not list(processes_with("LAB_MARK", mark)), DEADLINE_S, "both are ended")


def test_sigterm_ends_it_with_0_and_with_what_it_has_started(there: Node) -> None:
    mark = f"of-{there.port}"
    with calling(there, LOCAL, f"LAB_MARK={mark} sleep 60"):
        wait_until(lambda: bool(list(processes_with("LAB_MARK", mark))), DEADLINE_S, "the command sleeps")
        there.process.send_signal(signal.SIGTERM)
        assert there.process.wait(DEADLINE_S) == 0
    assert not list(processes_with("LAB_MARK", mark))
    assert there.log.endswith("azcp-sshd: stopped\n")


def test_the_log_has_a_line_per_event_and_no_arguments(there: Node) -> None:
    call(there, LOCAL, "echo secret-word")
    wait_until(lambda: there.says("ended with 0"), DEADLINE_S, "the end is logged")
    assert there.says("host key SHA256:.*, signed by the job's key")
    assert there.says("came in with the job's key")
    assert there.says("runs sh, process")
    assert "secret-word" not in there.log


def test_a_readiness_probe_is_no_event(there: Node) -> None:
    with socket.create_connection((LOCAL, there.port)) as probe:
        probe.setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )  # a reset, as kubelet's
    call(there, LOCAL, "true")
    wait_until(lambda: there.says("ended with 0"), DEADLINE_S, "what came later is logged")
    assert not there.says("reset by peer")


def test_a_port_that_is_taken_is_told(tmp_path: Path, there: Node) -> None:
    from azcp_runtime.ssh.keys import copy_keys
    from azcp_runtime.ssh.server import Service, serve
    from azcp_runtime.ssh.state import Surroundings

    keys = copy_keys(find_keys({}, None, str(there.keys)), tmp_path)
    service = Service(keys, Surroundings({}, "/"), LOCAL, there.port)
    with pytest.raises(PreflightError, match=f"cannot listen on port {there.port}"):
        asyncio.run(serve(service, lambda: pytest.fail("it never served")))


def test_a_node_that_is_not_there_is_named(there: Node) -> None:
    there.process.kill()
    there.process.wait(DEADLINE_S)
    ended = call(there, LOCAL, "true")
    assert ended.returncode == 255
    assert ended.stderr.startswith(b"azcp-ssh: 127.0.0.1 cannot be reached on port")
