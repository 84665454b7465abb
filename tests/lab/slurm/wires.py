"""The network of the lab: a bridge in the controller's namespace, with a port for each node and the host."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, ip_network
from typing import Final

HOST: Final = "host"
BRIDGE: Final = "lab0"
_CONTROLLER: Final = 1
_FIRST_NODE: Final = 11
_HOST: Final = 254
_TRIES: Final = 100


def free_network() -> IPv4Network:
    """A /24 that overlaps with nothing this machine has a route to.

    Raises:
        RuntimeError: there is none.
    """
    taken = _routes()
    for _ in range(_TRIES):
        candidate = IPv4Network(f"10.{64 + secrets.randbelow(192)}.{secrets.randbelow(256)}.0/24")
        if not any(candidate.overlaps(route) for route in taken):
            return candidate
    raise RuntimeError("this machine has a route to all of 10.0.0.0/8")


def controller_address(network: IPv4Network) -> IPv4Address:
    """That of the machine with the bridge."""
    return network[_CONTROLLER]


def node_address(network: IPv4Network, index: int) -> IPv4Address:
    """That of a node, from 0."""
    return network[_FIRST_NODE + index]


def host_address(network: IPv4Network) -> IPv4Address:
    """That by which the machines reach this one."""
    return network[_HOST]


def lay_bridge(controller: int, network: IPv4Network) -> None:
    """Make the bridge in the namespace of that process, with a port HOST that leads to this machine.

    It lies in a namespace because this machine's firewall would rule what passes over a bridge of its own.
    """
    link = f"lab{secrets.token_hex(4)}"
    _ip_in(
        controller,
        "link set lo up",
        f"link add {BRIDGE} type bridge",
        f"addr add {controller_address(network)}/{network.prefixlen} dev {BRIDGE}",
        f"link set {BRIDGE} up",
        f"link add {HOST} type veth peer name {link} netns {os.getpid()}",
        f"link set {HOST} master {BRIDGE} up",
    )
    _ip(f"addr add {host_address(network)}/{network.prefixlen} dev {link}", f"link set {link} up")


def plug(controller: int, name: str, node: int, address: IPv4Address, prefix: int) -> None:
    """Connect the namespace of the process `node` to the bridge."""
    # The same at each boot: nobody's ARP table is then wrong about a node that comes back.
    hardware = "02:00:" + ":".join(f"{byte:02x}" for byte in address.packed)
    peer = f"type veth peer name eth0 address {hardware} netns {node}"
    _ip_in(controller, f"link add {name} {peer}", f"link set {name} master {BRIDGE} up")
    _ip_in(node, "link set lo up", f"addr add {address}/{prefix} dev eth0", "link set eth0 up")


def unplug(controller: int, name: str) -> None:
    """Pull the cable of a node: nobody hears from it any more, not even that a connection has ended."""
    # The port itself goes when the kernel gets to it; by then the name may be wanted again.
    old = f"gone{secrets.token_hex(4)}"
    _ip_in(controller, f"link set {name} nomaster", f"link set {name} down", f"link set {name} name {old}")


def remove_host_port(controller: int) -> None:
    """Remove this machine's interface, and with it the port at its other end."""
    _ip_in(controller, f"link del {HOST}")


def _routes() -> list[IPv4Network]:
    text = subprocess.run(
        ["ip", "-4", "-json", "route", "show", "table", "all"], check=True, capture_output=True, text=True
    ).stdout
    named = [route["dst"] for route in json.loads(text)]
    return [_network(destination) for destination in named if destination != "default"]


def _network(destination: str) -> IPv4Network:
    network = ip_network(destination)
    assert isinstance(network, IPv4Network)
    return network


def _ip_in(process: int, *lines: str) -> None:
    _batch(["nsenter", f"--target={process}", "--net", "ip", "-batch", "-"], lines)


def _ip(*lines: str) -> None:
    _batch(["ip", "-batch", "-"], lines)


def _batch(argv: Sequence[str], lines: Sequence[str]) -> None:
    subprocess.run(argv, input="\n".join(lines) + "\n", check=True, text=True, stdout=subprocess.DEVNULL)
