"""An mpirun of the image reaches the nodes by the job's ssh, and finds its own daemon there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from azcp_runtime.launch.native import native_environment
from azcp_runtime.launch.phases import Nodes
from azcp_runtime.ssh.agent import parse_request

from tests.lab.ssh import LOCAL, Node, call, make_keys, node

NODES = Nodes({"a": "10.0.0.1"}, Path("/run/azcp/hostfile"))
ORTED = "#!/bin/sh\necho started from $0 with $OPAL_PREFIX: $@\n"


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Node]:
    """A node whose image has an MPI of its own."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "orted").write_text(ORTED)
    (theirs / "orted").chmod(0o755)
    env = {"PATH": f"{theirs}:/usr/bin:/bin", "OPAL_PREFIX": "/of/the/image"}
    with node(tmp_path / "node", make_keys(tmp_path / "keys"), env) as running:
        yield running


def test_the_commands_environment_is_the_containers_with_our_agent_and_hostfile() -> None:
    env = native_environment({"PATH": "/bin", "OMPI_MCA_pml": "theirs"}, 2300, NODES)
    assert env == {
        "PATH": "/bin",
        "OMPI_MCA_pml": "theirs",
        "OMPI_MCA_plm_rsh_agent": "/opt/azcp/bin/azcp-ssh",
        "PRTE_MCA_plm_ssh_agent": "/opt/azcp/bin/azcp-ssh",
        "AZCP_SSH_PORT": "2300",
        "OMPI_MCA_orte_default_hostfile": "/run/azcp/hostfile",
        "PRTE_MCA_prte_default_hostfile": "/run/azcp/hostfile",
    }


def test_the_operators_hostfile_is_left() -> None:
    named = {"OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile"}
    env = native_environment(named, 2222, NODES)
    assert env["OMPI_MCA_orte_default_hostfile"] == "/etc/mpi/hostfile"
    assert "PRTE_MCA_prte_default_hostfile" not in env


def test_the_arguments_that_the_operator_has_mpirun_pass_are_taken() -> None:
    argv = ["-o", "ConnectionAttempts=10", "-oStrictHostKeyChecking=no", "job-worker-0.job", "orted", "-mca"]
    request = parse_request(argv, "2300")
    assert (request.host, request.port, request.command) == ("job-worker-0.job", 2300, "orted -mca")


def test_a_bare_orted_is_that_of_the_image(there: Node) -> None:
    argv = [LOCAL, "orted", "-mca", "ess", '"env"']
    called = call(there, *argv)
    assert called.stdout.decode() == (
        f"started from {there.keys.parent}/theirs/orted with /of/the/image: -mca ess env\n"
    )


def test_the_daemon_of_open_mpi_with_a_prefix_finds_its_way_too(there: Node) -> None:
    theirs = there.keys.parent / "theirs"
    prefix = f"PATH={theirs}:$PATH ; export PATH ; OPAL_PREFIX=/moved ; export OPAL_PREFIX; {theirs}/orted x"
    called = call(there, LOCAL, prefix)
    assert called.stdout.decode() == f"started from {theirs}/orted with /moved: x\n"
