"""Where things are in an image that has been injected, and the names that both sides know them by."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "/opt/azcp"
"""Everything that was added is below it."""

PYTHON: Final = f"{PREFIX}/python/bin/python3"
OPENMPI: Final = f"{PREFIX}/openmpi"
LIB: Final = f"{PREFIX}/lib"
"""The runtime and its locked packages."""

BIN: Final = f"{PREFIX}/bin"
ETC: Final = f"{PREFIX}/etc"
MCA_PARAMS: Final = f"{ETC}/openmpi-mca-params.conf"
IMAGE_SETTINGS: Final = f"{ETC}/image.toml"
"""How the image was made, as far as the runtime must know: ssh and rdma."""

MANIFEST: Final = f"{PREFIX}/manifest.json"
"""Every component, its version and digest."""

BILL_OF_MATERIALS: Final = f"{PREFIX}/sbom.cdx.json"
"""The same as CycloneDX."""

COMMANDS: Final = ("azcp-distribute", "azcp-launch", "azcp-mpirun", "azcp-sshd", "azcp-doctor")

SSH_PORT: Final = 2222
"""Of azcp-sshd: high, since port 22 needs privileges and on a host network is the node's."""

ENV_SSH_PORT: Final = "AZCP_SSH_PORT"
ENV_SSH_KEYS: Final = "AZCP_SSH_KEYS"
"""The folder that holds the job's key pair, whatever its mode."""

ENV_STATE_DIR: Final = "AZCP_STATE_DIR"
"""The one folder that must be writable."""

ENV_INDEX: Final = "AZCP_INDEX"
"""Which of the job's nodes this one is: a number from 0, or a pod's name that ends in a dash and one."""

ENV_NODE_NAME: Final = "NODE_NAME"
"""The machine that the pod runs on, from spec.nodeName; azcp-launch --node-file writes it down."""

ENV_CLEAN: Final = "AZCP_CLEAN"
"""Set where the environment has been scrubbed already, so that ranks keep what mpirun gave them."""

ENV_RESTORED: Final = "AZCP_ENV_"
"""AZCP_ENV_UCX_TLS=tcp sets UCX_TLS=tcp for the runtime alone, after everything else was dropped."""

LONGEST_HOST_NAME: Final = 56
"""Open MPI 4.1 aborts in a node whose own host name is longer: it copies it into a buffer without a look."""
