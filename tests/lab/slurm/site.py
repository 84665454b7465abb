"""The machines of the cluster and their network: started in order, killed, brought back, removed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Final

from tests.lab.slurm import conf, wires
from tests.lab.slurm.layout import Layout, pmix_folder
from tests.lab.slurm.machine import NAMESPACES, Machine, start_machine
from tests.lab.waiting import wait_until

LISTENS_S: Final = 20.0
_PROGRAMS: Final = ("slurmctld", "slurmd", "sbatch", "munged", "ip", "unshare", "nsenter")
# One for each machine: it takes a message that Slurm sends to several nodes for a replay from the second on.
_MUNGED: Final = (
    "munged",
    "--key-file=/etc/slurm/munge.key",
    "--seed-file=/run/munge/seed",
    "--pid-file=/run/munge/pid",
    "--log-file=/run/munge/log",
)
_LISTENING: Final = "0A"


def lacking() -> str | None:
    """Why no cluster can be started here; None where it can."""
    if os.geteuid() != 0:
        return "only root can give the nodes of a Slurm cluster their namespaces"
    if absent := [program for program in _PROGRAMS if shutil.which(program) is None]:
        return f"{', '.join(absent)} not on PATH: install slurm-wlm, munge and iproute2"
    if not pmix_folder().is_dir():
        return "srun --mpi=pmix needs the package libpmix2"
    trial = subprocess.run(
        ["unshare", *NAMESPACES, "--fork", "--mount-proc", "true"],
        check=False,
        capture_output=True,
        text=True,
    )
    return f"nodes cannot have namespaces here: {trial.stderr.strip()}" if trial.returncode else None


@dataclass(frozen=True, slots=True)
class Site:
    """The machines; `running` are those that have power."""

    layout: Layout
    network: IPv4Network
    nodes: tuple[str, ...]
    running: dict[str, Machine] = field(default_factory=dict)

    def addresses(self) -> dict[str, IPv4Address]:
        """Each machine's."""
        numbered = {name: wires.node_address(self.network, i) for i, name in enumerate(self.nodes)}
        return {conf.CONTROLLER: wires.controller_address(self.network)} | numbered

    @property
    def controller(self) -> Machine:
        """The one with slurmctld, and with the bridge."""
        return self.running[conf.CONTROLLER]

    def start_controller(self) -> None:
        """Up to where it takes registrations."""
        machine = self._start(conf.CONTROLLER, ["slurmctld", "-D"])
        wires.lay_bridge(machine.init, self.network)
        machine.boot()
        wait_until(lambda: _listens(machine.init, conf.PORT), LISTENS_S, "slurmctld listens")

    def start_node(self, name: str) -> None:
        """Up to where slurmd starts."""
        machine = self._start(name, ["slurmd", "-D"])
        wires.plug(self.controller.init, name, machine.init, self.addresses()[name], self.network.prefixlen)
        machine.boot()

    def kill_node(self, name: str) -> None:
        """No process of it gets to say anything: the cable first, then the power."""
        wires.unplug(self.controller.init, name)
        self.running.pop(name).kill()

    def stop(self) -> None:
        """Everything that runs, the controller last."""
        while self.running:
            _, machine = self.running.popitem()
            machine.stop()

    def _start(self, name: str, service: Sequence[str]) -> Machine:
        machine = start_machine(name, self.layout.disk(name), [_MUNGED, service], self.layout.log(name))
        self.running[name] = machine
        return machine


@contextmanager
def powered(site: Site) -> Iterator[None]:
    """Have all machines on; afterwards no process, interface, mount or file of them is left."""
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, site.layout.folder)
        stack.callback(site.stop)
        site.start_controller()
        # The kernel would remove it too, but some time after the last process of the namespace.
        stack.callback(wires.remove_host_port, site.controller.init)
        for name in site.nodes:
            site.start_node(name)
        yield


def _listens(process: int, port: int) -> bool:
    """Whether anything in the namespace of that process listens there."""
    lines = Path(f"/proc/{process}/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    return any((f[1].endswith(f":{port:04X}"), f[3]) == (True, _LISTENING) for f in map(str.split, lines))
