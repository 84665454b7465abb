"""An ssh key pair that lives as long as a rehearsal."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Both halves as files have them."""

    private: bytes = field(repr=False)
    public: bytes


def make_key_pair() -> KeyPair:
    """An ECDSA pair on P-521 in the forms that mpi-operator writes."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    key = ec.generate_private_key(ec.SECP521R1())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return KeyPair(private, public + b"\n")
