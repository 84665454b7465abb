"""The texts of slurm.conf, gres.conf and hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address
from pathlib import Path
from typing import Final

CONTROLLER: Final = "controller"
PORT: Final = 6817
# In each machine's own /run; a job's sockets lie in the spool, and their paths must stay short.
SPOOL: Final = "/run/slurmd"
STATE: Final = "/run/slurmctld"

DEFAULTS: Final[Mapping[str, str]] = {
    "ClusterName": "lab",
    "SlurmctldHost": CONTROLLER,
    "SlurmctldPort": str(PORT),
    "SlurmUser": "root",
    "SlurmdUser": "root",
    "SlurmctldPidFile": "/run/slurmctld.pid",
    "SlurmdPidFile": "/run/slurmd.pid",
    "StateSaveLocation": STATE,
    "SlurmdSpoolDir": SPOOL,
    # What a node has is what is said here, not what this machine has.
    "SlurmdParameters": "config_overrides",
    "ProctrackType": "proctrack/linuxproc",
    "TaskPlugin": "task/none",
    "JobAcctGatherType": "jobacct_gather/none",
    "AccountingStorageType": "accounting_storage/none",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_Core",
    "MpiDefault": "none",
    "JobRequeue": "1",
    # A job that is requeued waits until its credential has expired: 120 s unless told.
    "AuthInfo": "cred_expire=5",
    "ReturnToService": "2",
    # A node is lost once a message to it has failed and this is over: after some 8 s in all.
    "SlurmdTimeout": "1",
    "MessageTimeout": "5",
    "TCPTimeout": "1",
    "KillWait": "2",
    "SchedulerParameters": "batch_sched_delay=0,sched_interval=1,sched_min_interval=0",
    "SlurmctldDebug": "info",
    "SlurmdDebug": "info",
}


def slurm_conf(nodes: Sequence[str], cpus: int, gpus: int, parameters: Mapping[str, str]) -> str:
    """The file for nodes that are all alike; `parameters` go before the defaults."""
    settings = {**DEFAULTS, **({"GresTypes": "gpu"} if gpus else {}), **parameters}
    gres = f" Gres=gpu:{gpus}" if gpus else ""
    # One core per CPU: as on VM sizes without hyperthreading, which those with GPUs are.
    shape = f"CPUs={cpus} Boards=1 SocketsPerBoard=1 CoresPerSocket={cpus} ThreadsPerCore=1"
    lines = [f"{name}={value}" for name, value in settings.items()]
    lines.append(f"NodeName={','.join(nodes)} {shape} RealMemory=1000000{gres} State=UNKNOWN")
    lines.append("PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP")
    return "".join(f"{line}\n" for line in lines)


def gres_conf(devices: Sequence[Path]) -> str:
    """The file that makes a GPU of each device."""
    return "".join(f"Name=gpu File={device}\n" for device in devices)


def hosts(addresses: Mapping[str, IPv4Address]) -> str:
    """The file by which the machines know each other."""
    own = "".join(f"{address} {name}\n" for name, address in addresses.items())
    return f"127.0.0.1 localhost\n{own}"
