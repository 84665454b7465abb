"""Pyxis is built once, handed to the nodes within a deadline, and loaded from files of root's alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab.cyclecloud import (
    PROJECT,
    Releases,
    failed,
    install_project,
    made_up_pyxis,
    needs_vm,
    passed,
    script,
    sha256,
    stand_for_slurm,
    state,
)
from tests.lab.file_server import FileServer
from tests.lab.throwaway import STANDINS, Throwaway

pytestmark = needs_vm

BUILD = "scheduler/scripts/20-pyxis-build.sh"
LOAD = "scheduler/scripts/30-pyxis.sh"
TAKE = "execute/scripts/50-pyxis.sh"
PLUGIN = "/opt/azcp/pyxis/spank_pyxis.so"
CONF = "/etc/slurm/plugstack.conf.d/pyxis.conf"
PLUGSTACK = "/etc/slurm/plugstack.conf"
NAME = "pyxis-0.20.0_slurm-23.11.9"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Two VMs, the folder that they share, and where they download from."""

    scheduler: Throwaway
    node: Throwaway
    shared: Path
    server: FileServer
    releases: Releases

    @property
    def hand_over(self) -> Path:
        """The project's part of the shared folder."""
        return self.shared / "azcp" / "azcp-llama"

    def one(self, suffix: str) -> Path:
        """The one file there that ends so."""
        (found,) = [path for path in self.hand_over.iterdir() if path.name.endswith(suffix)]
        return found

    def restarts(self) -> int:
        """How often slurmd was restarted on the node."""
        record = self.node.path("/restarts")
        return len(record.read_text().splitlines()) if record.exists() else 0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A scheduler and a node, neither of which has started yet."""
    shared = tmp_path / "sched"
    shared.mkdir(mode=0o755)
    source = made_up_pyxis()
    with ExitStack() as stack:
        server = stack.enter_context(FileServer({"/pyxis/v0.20.0.tar.gz": source}))
        releases = Releases(server.url(""), {"v0.20.0.tar.gz": sha256(source)})
        scheduler, node = (
            stack.enter_context(Throwaway(tmp_path / name, {"/sched": shared}))
            for name in ("scheduler", "node")
        )
        for machine in (scheduler, node):
            install_project(machine, releases, deadline="1s")
            stand_for_slurm(machine)
        yield Cluster(scheduler, node, shared, server, releases)


def test_the_scheduler_hands_over_what_it_built_with_its_digest(cluster: Cluster) -> None:
    passed(cluster.scheduler, BUILD)
    digest = cluster.one(".sha256").read_text().strip()
    plugin = cluster.one(".so")
    assert plugin.name == f"{NAME}_x86_64.{digest}.so"
    assert sha256(plugin.read_bytes()) == digest
    assert plugin.read_text() == f"plugin -I{STANDINS}/include\n"
    assert (cluster.hand_over / "scheduler").read_text() == f"{NAME}_x86_64\n"


def test_a_second_start_of_the_scheduler_neither_downloads_nor_builds(cluster: Cluster) -> None:
    passed(cluster.scheduler, BUILD)
    before = sorted((path.name, state(path)) for path in cluster.hand_over.iterdir())
    assert "is handed over already" in passed(cluster.scheduler, BUILD)
    assert sorted((path.name, state(path)) for path in cluster.hand_over.iterdir()) == before
    assert len(cluster.server.asked) == 1


def test_the_scheduler_loads_it_too(cluster: Cluster) -> None:
    passed(cluster.scheduler, BUILD)
    passed(cluster.scheduler, LOAD)
    assert cluster.scheduler.path(CONF).read_text() == f"required {PLUGIN}\n"
    assert cluster.scheduler.path(PLUGSTACK).read_text() == "include /etc/slurm/plugstack.conf.d/*\n"
    assert cluster.scheduler.path(PLUGIN).read_bytes() == cluster.one(".so").read_bytes()
    passed(cluster.scheduler, "scheduler/tests/test-pyxis.sh")


def test_a_node_takes_it_over_and_restarts_slurmd_once(cluster: Cluster) -> None:
    passed(cluster.scheduler, BUILD)
    passed(cluster.node, TAKE)
    assert cluster.node.path(PLUGIN).read_bytes() == cluster.one(".so").read_bytes()
    assert cluster.node.path(CONF).read_text() == f"required {PLUGIN} runtime_path=/mnt/nvme/enroot/pyxis\n"
    before = [state(cluster.node.path(path)) for path in (PLUGIN, CONF, PLUGSTACK)]
    passed(cluster.node, TAKE)
    assert [state(cluster.node.path(path)) for path in (PLUGIN, CONF, PLUGSTACK)] == before
    assert cluster.restarts() == 1
    passed(cluster.node, "execute/tests/test-pyxis.sh")


def test_a_node_that_waits_gets_what_comes_later(cluster: Cluster) -> None:
    install_project(cluster.node, cluster.releases, deadline="1m")
    cluster.node.stand_in(
        "sleep", ["echo waits >>/sched/waits", "while [ ! -e /sched/azcp/azcp-llama/scheduler ]; do :; done"]
    )
    cluster.scheduler.stand_in(
        "sha256sum", ["while [ ! -e /sched/waits ]; do :; done", 'exec /usr/bin/sha256sum "$@"']
    )
    with cluster.node.start(f"{PROJECT}/specs/execute/cluster-init/scripts/50-pyxis.sh") as waiting:
        passed(cluster.scheduler, BUILD)
        output, _ = waiting.communicate(timeout=60)
    assert waiting.returncode == 0
    assert f"waits up to 60 s for {NAME}_x86_64" in output
    assert cluster.node.path(PLUGIN).exists()


def test_a_missing_hand_over_ends_at_the_deadline_and_says_what_is_missing(cluster: Cluster) -> None:
    output = failed(cluster.node, TAKE)
    assert f"{NAME}_x86_64 was not handed over within 1 s: /sched/azcp/azcp-llama holds nothing" in output
    assert not cluster.node.path(CONF).exists()
    assert cluster.restarts() == 0


def test_a_plugin_for_another_slurm_is_not_taken(cluster: Cluster) -> None:
    passed(cluster.scheduler, BUILD)
    stand_for_slurm(cluster.node, "24.05.4")
    output = failed(cluster.node, TAKE)
    assert "pyxis-0.20.0_slurm-24.05.4_x86_64 was not handed over" in output
    assert f"holds {NAME}_x86_64.sha256" in output


def test_half_a_plugin_is_not_taken(cluster: Cluster) -> None:
    passed(cluster.scheduler, BUILD)
    cluster.one(".so").write_text("plugin")
    assert "was not handed over" in failed(cluster.node, TAKE)
    assert not cluster.node.path(PLUGIN).exists()
    passed(cluster.scheduler, BUILD)
    passed(cluster.node, TAKE)


@pytest.mark.parametrize("suffix", [".so", ".sha256"])
def test_what_is_not_roots_is_not_loaded(suffix: str, cluster: Cluster) -> None:
    passed(cluster.scheduler, BUILD)
    os.chown(cluster.one(suffix), 4321, 4321)
    assert "does not belong to root" in failed(cluster.node, TAKE)
    assert not cluster.node.path(PLUGIN).exists()


def test_a_folder_that_others_can_write_to_is_not_trusted(cluster: Cluster) -> None:
    passed(cluster.scheduler, BUILD)
    cluster.hand_over.chmod(0o777)
    assert "can be written to by others" in failed(cluster.node, TAKE)


def test_source_with_another_digest_is_not_built(cluster: Cluster) -> None:
    cluster.server.bodies = {path: body + b"\0" for path, body in cluster.server.bodies.items()}
    assert "was expected" in failed(cluster.scheduler, BUILD)
    assert not cluster.hand_over.exists()


def test_a_build_that_was_killed_is_done_again(cluster: Cluster) -> None:
    cluster.scheduler.stand_in("make", ["kill -9 $PPID"])
    assert script(cluster.scheduler, BUILD).returncode != 0
    cluster.scheduler.no_stand_in("make")
    passed(cluster.scheduler, BUILD)
    passed(cluster.node, TAKE)


def test_a_hand_over_that_was_killed_before_the_digest_is_done_again(cluster: Cluster) -> None:
    cluster.scheduler.stand_in("mv", ['/usr/bin/mv "$@"', 'case "$*" in */sched/*.so) kill -9 $PPID;; esac'])
    assert script(cluster.scheduler, BUILD).returncode != 0
    assert not list(cluster.hand_over.glob("*.sha256"))
    assert "was not handed over" in failed(cluster.node, TAKE)
    cluster.scheduler.no_stand_in("mv")
    passed(cluster.scheduler, BUILD)
    passed(cluster.node, TAKE)


def test_a_run_that_was_killed_before_the_restart_makes_up_for_it(cluster: Cluster) -> None:
    passed(cluster.scheduler, BUILD)
    cluster.node.stand_in("systemctl", ["kill -9 $PPID"])
    assert script(cluster.node, TAKE).returncode != 0
    slurmd = ['[ "$1" != restart ] || echo "$*" >>/restarts']
    cluster.node.stand_in("systemctl", slurmd)
    passed(cluster.node, TAKE)
    passed(cluster.node, TAKE)
    assert cluster.restarts() == 1


def test_a_node_of_another_architecture_builds_its_own(cluster: Cluster) -> None:
    passed(cluster.scheduler, BUILD)
    cluster.node.stand_in("uname", ["echo aarch64"])
    passed(cluster.node, TAKE)
    assert sorted(path.name for path in cluster.hand_over.glob("*.sha256")) == [
        f"{NAME}_aarch64.sha256",
        f"{NAME}_x86_64.sha256",
    ]
    assert len(cluster.server.asked) == 2
    passed(cluster.node, TAKE)
    assert len(cluster.server.asked) == 2


def test_plugstack_keeps_what_it_has_and_the_link_to_the_shared_folder(cluster: Cluster) -> None:
    passed(cluster.scheduler, BUILD)
    (cluster.shared / "plugstack.conf").write_text("optional /opt/site/limits.so\n")
    cluster.node.path("/etc/slurm").mkdir()
    cluster.node.path(PLUGSTACK).symlink_to("/sched/plugstack.conf")
    for _ in range(2):
        passed(cluster.node, TAKE)
    assert cluster.node.path(PLUGSTACK).is_symlink()
    assert (cluster.shared / "plugstack.conf").read_text() == (
        "optional /opt/site/limits.so\ninclude /etc/slurm/plugstack.conf.d/*\n"
    )


def test_the_configuration_of_an_older_pyxis_is_replaced(cluster: Cluster) -> None:
    passed(cluster.scheduler, BUILD)
    cluster.node.write(CONF, "required /opt/pyxis/spank_pyxis.so runtime_path=/tmp/enroot")
    passed(cluster.node, TAKE)
    assert cluster.node.path(CONF).read_text() == f"required {PLUGIN} runtime_path=/mnt/nvme/enroot/pyxis\n"


def test_a_second_pyxis_elsewhere_is_refused(cluster: Cluster) -> None:
    passed(cluster.scheduler, BUILD)
    cluster.node.write("/etc/slurm/plugstack.conf.d/image.conf", "required /usr/lib/slurm/spank_pyxis.so\n")
    assert "image.conf loads another pyxis" in failed(cluster.node, TAKE)


def test_without_slurm_the_order_of_the_template_is_named(cluster: Cluster) -> None:
    cluster.node.stand_in("srun", ["exit 127"])
    cluster.node.path(f"{STANDINS}/bin/srun").unlink()
    cluster.node.said("rm", "-f", "/usr/bin/srun")
    assert "Slurm is not installed" in failed(cluster.node, TAKE)


def test_a_machine_that_can_be_served_passes_the_check(cluster: Cluster) -> None:
    assert "this VM is x86_64 and sees /sched" in passed(cluster.node, "default/scripts/10-check.sh")
    passed(cluster.node, "default/tests/test-check.sh")


def test_a_shared_folder_of_everybody_is_refused(cluster: Cluster) -> None:
    cluster.shared.chmod(0o777)
    assert "can be written to by everybody" in failed(cluster.node, "default/scripts/10-check.sh")
