"""Indexed Jobs, JobSets and StatefulSets: pods of one headless service that differ in a number at the end."""

from __future__ import annotations

from dataclasses import dataclass

from azcp_runtime.contract import UsageError
from azcp_runtime.launch.discovery.surveyed import Surveyed
from azcp_runtime.launch.hosts import Found, checked_hosts
from azcp_runtime.launch.index import JOB_INDEX, ordinal_of, own_index


@dataclass(frozen=True, slots=True)
class Service:
    """Hosts BASE-0.DOMAIN to BASE-(N-1).DOMAIN, of which this node is one.

    How many there are cannot be known from inside of a pod: --nodes says it.

    Args:
        node: what is known of this one.
        nodes: --nodes.
    """

    node: Surveyed
    nodes: int | None

    @property
    def sought(self) -> str:
        """The three things that it takes."""
        lacking = [
            *(["--nodes N is not given"] if self.nodes is None else []),
            *([] if self._has_number else [self._no_number]),
            *([] if self.node.domain else ["/etc/hosts gives it no domain, as a pod's subdomain would"]),
        ]
        return f"the service of an Indexed Job, JobSet or StatefulSet ({'; '.join(lacking) or 'all there'})"

    def find(self) -> Found | None:
        """All names of the service.

        Raises:
            UsageError: this node's number is beyond --nodes.
        """
        if self.nodes is None or not self.is_likely:
            return None
        own = ordinal_of(self.node.name)
        if own is None or own >= self.nodes:
            raise UsageError(
                f"this node is {self.node.name}, --nodes says {self.nodes}",
                cause="the numbers begin at 0",
                remedy="give --nodes the completions or replicas of the workload",
            )
        base = self.node.name.removesuffix(f"-{own}")
        names = [f"{base}-{number}.{self.node.domain}" for number in range(self.nodes)]
        kind = "Indexed Job" if JOB_INDEX in self.node.env else "StatefulSet"
        way = f"the {kind}'s service {self.node.domain}"
        hosts = checked_hosts(names, way)
        return Found(way, hosts, own_index(self.node.env, self.node.name, hosts))

    @property
    def is_likely(self) -> bool:
        """Whether everything is there but perhaps the number of nodes."""
        return self._has_number and bool(self.node.domain)

    @property
    def _has_number(self) -> bool:
        own = ordinal_of(self.node.name)
        # With host networking the name is the machine's, whatever number it ends in.
        return own is not None and self.node.env.get(JOB_INDEX, str(own)) == str(own)

    @property
    def _no_number(self) -> str:
        said = self.node.env.get(JOB_INDEX)
        wanted = f"-{said}, as {JOB_INDEX} has it" if said else "a dash and a number"
        return f"the host name {self.node.name} does not end in {wanted}"
