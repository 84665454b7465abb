"""A cluster in network namespaces: account, launcher, and nodes with a front link and some of the fabric."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

MTU_BYTES: Final = 9000
FRONT: Final = "front"
FABRIC: Final = "fabric"

_FRONT_NET: Final = "10.77.0"
_FABRIC_NET: Final = "10.78"
_ACCOUNT_HOST: Final = 250
_LAUNCHER_HOST: Final = 251
_GATEWAY_HOST: Final = 252
_LAST_RESORT: Final = "1000"
_END_DEADLINE_S: Final = 10.0
_POLL_S: Final = 0.05
_ETHERNET_HEADER_BYTES: Final = 14
_TCP_IP_HEADER_BYTES: Final = 52  # 20 IP + 20 TCP + 12 for timestamps


def payload_share() -> float:
    """What part of a shaped rate is TCP payload at this MTU."""
    return (MTU_BYTES - _TCP_IP_HEADER_BYTES) / (MTU_BYTES + _ETHERNET_HEADER_BYTES)


@dataclass(frozen=True)
class Cluster:
    """The names of the namespaces, which are the host names too, and the account's address."""

    account: str
    launcher: str
    nodes: tuple[str, ...]
    account_address: str = f"{_FRONT_NET}.{_ACCOUNT_HOST}"


def fabric_name(rail: int) -> str:
    """The interface of a node's rail; of the first one also where there are several."""
    return FABRIC if rail == 0 else f"{FABRIC}{rail + 1}"


@contextmanager
def shaped_cluster(nodes: int, egress_bps: int, fabric_bps: int, rails: int = 1) -> Iterator[Cluster]:
    """A cluster for the length of the block; afterwards none of its processes and namespaces are left.

    Args:
        nodes: how many nodes.
        egress_bps: bits per second that the account sends in total.
        fabric_bps: bits per second that each link of a node sends, and receives, over the fabric.
        rails: links of each node to the fabric, each in a network of its own.
    """
    tag = f"b{os.getpid()}"
    cluster = Cluster(f"{tag}a", f"{tag}l", tuple(f"{tag}n{i}" for i in range(nodes)))
    switch = f"{tag}s"
    namespaces = (switch, cluster.account, cluster.launcher, *cluster.nodes)
    try:
        _make_namespaces(namespaces)
        _make_bridges(switch, (FRONT, *map(fabric_name, range(rails))))
        _plug(switch, cluster.account, FRONT, f"{cluster.account_address}/24")
        _shape(cluster.account, FRONT, egress_bps)
        _plug(switch, cluster.launcher, FABRIC, f"{_FABRIC_NET}.0.{_LAUNCHER_HOST}/24")
        for index, node in enumerate(cluster.nodes):
            _plug(switch, node, FRONT, f"{_FRONT_NET}.{index + 1}/24")
            for rail in range(rails):
                name = fabric_name(rail)
                port = _plug(switch, node, name, f"{_FABRIC_NET}.{rail}.{index + 1}/24")
                _shape(node, name, fabric_bps)
                _shape(switch, port, fabric_bps)
        _connect_fabrics(switch, cluster.nodes, rails)
        yield cluster
    finally:
        for namespace in namespaces:
            _remove(namespace)


def inside(namespace: str, command: Sequence[str]) -> list[str]:
    """The command that runs `command` in a namespace, under the namespace's name as its host name."""
    renamed = ["unshare", "-u", "sh", "-c", 'hostname "$0" && exec "$@"', namespace, *command]
    return ["ip", "netns", "exec", namespace, *renamed]


def remote_shell(folder: Path, seen_as: Path) -> str:
    """A script for mpirun's plm_rsh_agent: HOST COMMAND... runs the command in the namespace HOST.

    There, and nowhere else, `folder`/HOST is mounted on `seen_as`: each node has a disk of its own.
    """
    disk, mount_point = shlex.quote(str(folder)), shlex.quote(str(seen_as))
    inner = f'hostname "$0" && mount --bind {disk}/"$0" {mount_point} && eval "$@"'
    return (
        "#!/bin/sh\n"
        "host=$1; shift\n"
        f'exec ip netns exec "$host" unshare -u sh -c {shlex.quote(inner)} "$host" "$@"\n'
    )


def sent_bytes(namespace: str, device: str) -> int:
    """Bytes that an interface has sent so far."""
    (link,) = json.loads(_ip("-n", namespace, "-json", "-statistics", "link", "show", device))
    count: int = link["stats64"]["tx"]["bytes"]
    return count


def _ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout


def _make_namespaces(namespaces: Sequence[str]) -> None:
    for namespace in namespaces:
        _ip("netns", "add", namespace)
        _ip("-n", namespace, "link", "set", "lo", "up")


def _make_bridges(switch: str, bridges: Sequence[str]) -> None:
    for bridge in bridges:
        _ip("-n", switch, "link", "add", bridge, "mtu", str(MTU_BYTES), "type", "bridge")
        _ip("-n", switch, "link", "set", bridge, "up")


def _connect_fabrics(switch: str, nodes: Sequence[str], rails: int) -> None:
    """Routes between the networks of the rails: MPI asks for one before it takes two ranks for neighbours."""
    for rail in range(rails if rails > 1 else 0):
        gateway = f"{_FABRIC_NET}.{rail}.{_GATEWAY_HOST}"
        _ip("-n", switch, "addr", "add", f"{gateway}/24", "dev", fabric_name(rail))
        for node, other in product(nodes, set(range(rails)) - {rail}):
            route = [f"{_FABRIC_NET}.{other}.0/24", "via", gateway, "dev", fabric_name(rail)]
            _ip("-n", node, "route", "add", *route, "metric", _LAST_RESORT)
    if rails > 1:
        forward = ["sysctl", "-qw", "net.ipv4.ip_forward=1"]
        subprocess.run(["ip", "netns", "exec", switch, *forward], check=True, capture_output=True)


def _plug(switch: str, namespace: str, network: str, address: str) -> str:
    """Connect a namespace to a bridge; the name of the port on the switch's side."""
    port = f"{network[:2]}{network[-1]}{namespace[-8:]}"
    link = ["-n", namespace, "link", "add", network, "mtu", str(MTU_BYTES), "type", "veth"]
    _ip(*link, "peer", "name", port, "mtu", str(MTU_BYTES), "netns", switch)
    _ip("-n", switch, "link", "set", port, "master", network, "up")
    _ip("-n", namespace, "addr", "add", address, "dev", network)
    _ip("-n", namespace, "link", "set", network, "up")
    return port


def _shape(namespace: str, device: str, rate_bps: int) -> None:
    # A port that drops what eight senders queue makes TCP wait for its timer: the fabric is to be lossless.
    bucket = ["tbf", "rate", f"{rate_bps}bit", "burst", "512kb", "limit", "16mb"]
    command = ["tc", "-n", namespace, "qdisc", "add", "dev", device, "root", *bucket]
    subprocess.run(command, check=True, capture_output=True, text=True)


def _remove(namespace: str) -> None:
    deadline_s = time.monotonic() + _END_DEADLINE_S
    with suppress(subprocess.CalledProcessError):  # the namespace was never made
        while pids := _ip("netns", "pids", namespace).split():
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"processes {', '.join(pids)} in namespace {namespace} do not end")
            time.sleep(_POLL_S)
        _ip("netns", "del", namespace)
