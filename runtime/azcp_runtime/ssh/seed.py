"""The job's key pair from 32 random bytes that all its nodes are given: no file of it has to be handed on."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

from azcp_runtime.contract import UsageError
from azcp_runtime.ssh.keys import JobKeys

SEED_BYTES: Final = 32
"""An ed25519 private key is so long, and any bytes are one."""

STDIN: Final = "-"
_SOURCE: Final = f"head -c {SEED_BYTES} /dev/urandom"


def read_seed(source: str) -> bytes:
    """The bytes of --key-seed; srun hands its own standard input to each task.

    Args:
        source: a file, or - for standard input.

    Raises:
        UsageError: there are fewer, or more.
    """
    try:
        descriptor = os.dup(0) if source == STDIN else os.open(source, os.O_RDONLY)
        with open(descriptor, "rb", buffering=0) as stream:
            seed = b""
            while len(seed) <= SEED_BYTES and (piece := stream.read(SEED_BYTES + 1 - len(seed))):
                seed += piece
    except OSError as error:
        raise UsageError(f"--key-seed {source} cannot be read: {error.strerror}") from error
    if len(seed) != SEED_BYTES:
        count = "more" if len(seed) > SEED_BYTES else f"{len(seed)}"
        raise UsageError(
            f"--key-seed needs {SEED_BYTES} bytes, and {count} came", remedy=f"give it {_SOURCE}"
        )
    return seed


def keys_from_seed(seed: bytes) -> JobKeys:
    """The same pair on every node."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    key = Ed25519PrivateKey.from_private_bytes(seed)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return JobKeys(Path("--key-seed"), private, public + b"\n", b"")


def forget(state: Path) -> None:
    """Remove what this run has left there, keys and environments among it: the folder may outlive the job."""
    shutil.rmtree(state, ignore_errors=True)
