"""Names that become host names, hosts that mpirun is given, and pods on the node's own network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from azcp_runtime.contract.image import LONGEST_HOST_NAME

from azcp_kit.lint.finding import Finding, Rule, Severity, named
from azcp_kit.lint.manifest import Manifest
from azcp_kit.lint.pods import Pod
from azcp_kit.lint.settings import MPIRUN
from azcp_kit.lint.setup import Setup
from azcp_kit.spec.names import LONGEST_LABEL

SSH_PORT: Final = 22

LONG_HOST_NAME: Final = Rule(
    "K301-host-name-too-long",
    Severity.ERROR,
    why=f"mpirun aborts on a host name of more than {LONGEST_HOST_NAME} characters, and DNS ends at"
    f" {LONGEST_LABEL}",
    fix="shorten the name",
)
NOT_A_LABEL: Final = Rule(
    "K302-not-a-host-name",
    Severity.ERROR,
    why="the name becomes a host name: small letters, digits and hyphens, a letter or digit at both ends",
    fix="rename it",
)
HOST_NETWORK_DNS: Final = Rule(
    "K306-host-network-without-cluster-dns",
    Severity.WARNING,
    why="with hostNetwork a pod asks the node's name server, which does not know Services",
    fix="set dnsPolicy: ClusterFirstWithHostNet",
)
NODES_OWN_PORT: Final = Rule(
    "K307-port-22-on-host-network",
    Severity.ERROR,
    why="port 22 of the host network belongs to the node's own sshd",
    fix="use a high port such as 2222 for sshd, ssh, the Service and the probe",
)
SHORT_NAMES: Final = Rule(
    "K308-full-names-are-cut",
    Severity.WARNING,
    why="Open MPI cuts host names at the first dot; a pod's own name is short already, so hosts are taken for"
    " strangers or two become one",
    fix="give mpirun `-mca orte_keep_fqdn_hostnames 1` (4.x), or a hostfile of addresses",
)

UNRESOLVED: Final = Rule(
    "K309-names-without-subdomain",
    Severity.WARNING,
    why="a pod's name alone does not resolve in another pod: it stands under its Service",
    fix="write POD.SERVICE, or let azcp-launch find the hosts",
)

_LABEL: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
FILLED_IN_LATER: Final = re.compile(r"\{\{|\$|<|REPLACE|YOUR|CHANGE")
_FULL_NAME: Final = re.compile(r"[a-z0-9][\w${}-]*\.[\w${}-]*[a-z][\w.${}-]*(?::\d+)?", re.IGNORECASE)
_LONGEST_FULL_NAME: Final = 260
"""A name of DNS and a number of slots; anything longer is no host."""


def host_names(pod: Pod, _manifest: Manifest) -> Iterator[Finding]:
    """The longest host name that the owner makes of its name."""
    name = pod.owner.at("metadata", "name") or pod.owner.at("metadata", "generateName")
    longest = _longest_host_name(pod)
    if (
        not pod.name
        or not longest
        or not pod.is_peer
        or pod.has_host_network
        or FILLED_IN_LATER.search(longest)
    ):
        return
    too_many = len(longest) - LONGEST_HOST_NAME
    if too_many > 0:
        fix = f"shorten the name by {too_many} character{'s' if too_many > 1 else ''}"
        what = f"the host name {named(longest)} has {len(longest)} characters"
        yield LONG_HOST_NAME.at(name.line, what, fix=fix)
    if not _LABEL.fullmatch(longest):
        yield NOT_A_LABEL.at(name.line, f"{named(longest)} is no host name")


def _longest_host_name(pod: Pod) -> str:
    last = (pod.replicas or 1) - 1
    if pod.kind == "MPIJob":
        return f"{pod.name}-launcher" if pod.role == "Launcher" else f"{pod.name}-worker-{last}"
    if pod.kind == "StatefulSet":
        return f"{pod.name}-{last + (pod.owner.at('spec', 'ordinals', 'start').number or 0)}"
    if pod.kind == "Job" and pod.owner.at("spec", "completionMode").text == "Indexed":
        return f"{pod.name}-{last}"
    if pod.kind == "JobSet":
        jobs = pod.part.at("replicas").number or 1
        return f"{pod.name}-{pod.role}-{jobs - 1}-{(pod.replicas or 1) // jobs - 1}"
    return f"{pod.name}-{pod.role}-{last}" if pod.kind == "VolcanoJob" else ""


def host_network(pod: Pod, _manifest: Manifest) -> Iterator[Finding]:
    """What a pod on the node's own network must do differently."""
    if not pod.has_host_network:
        return
    line = pod.spec.at("hostNetwork").line
    # mpi-operator sets the policy of its pods itself.
    if pod.kind != "MPIJob" and pod.spec.at("dnsPolicy").text not in {"ClusterFirstWithHostNet", "None"}:
        yield HOST_NETWORK_DNS.at(line, f"{pod.title} has hostNetwork and the node's name server")
    for container in pod.containers:
        ports = container.node.at("ports").items
        numbers = (port.at("containerPort") for port in ports)
        own_port = next((number for number in numbers if number.number == SSH_PORT), None)
        sshd = next((c for c in container.script.commands if c.runs("sshd")), None)
        elsewhere = re.search(r"\bPort[ =/\\]|\s-p\s*\d", container.script.text)
        if own_port is not None:
            yield NODES_OWN_PORT.at(own_port.line, f"container {named(container.name)} listens on port 22")
        elif sshd is not None and not elsewhere:
            yield NODES_OWN_PORT.at(sshd.line, f"container {named(container.name)} runs sshd on its own port")


def full_names(setup: Setup) -> Iterator[Finding]:
    """Hosts with dots given to an mpirun that cuts them; mpi-operator's launchers are told not to."""
    if setup.is_operator_launcher or not setup.is_pod:
        return
    keeps = {"OMPI_MCA_orte_keep_fqdn_hostnames", "PRTE_MCA_prte_keep_fqdn_hostnames"}
    if any(setting.name in keeps for setting in setup.settings):
        return
    for command in setup.script.commands:
        hosts = command.option("--host", "-host", "-H") if command.runs(*MPIRUN) else None
        text = (setup.script.value(hosts) or hosts.text) if hosts else ""
        full = [host for host in text.split(",") if _FULL_NAME.fullmatch(host[:_LONGEST_FULL_NAME])]
        if hosts and full:
            yield SHORT_NAMES.at(hosts.line, f"mpirun is given {named(full[0])}")


def short_names(pod: Pod, _manifest: Manifest) -> Iterator[Finding]:
    """Pods of a Job or a StatefulSet given to mpirun by their bare names."""
    if not pod.name or pod.kind not in {"Job", "StatefulSet"} or pod.has_host_network:
        return
    own = re.compile(rf"{re.escape(pod.name)}-\d+(?::\d+)?")
    for container in pod.containers:
        for command in container.script.commands:
            hosts = command.option("--host", "-host", "-H") if command.runs(*MPIRUN) else None
            short = [host for host in hosts.text.split(",") if own.fullmatch(host)] if hosts else []
            # With one host it may be the pod itself; a script may write the names into /etc/hosts.
            if hosts and len(short) > 1 and "/etc/hosts" not in container.script.text:
                yield UNRESOLVED.at(hosts.line, f"mpirun is given {named(short[0])}")


POD_RULES: Final = (host_names, host_network, short_names)
SETUP_RULES: Final = (full_names,)
