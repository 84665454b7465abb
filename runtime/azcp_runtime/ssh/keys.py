"""The job's key pair, found wherever it is mounted, with whatever mode.

A Secret's files are 0644, fsGroup makes 0600 into 0640, and ssh refuses either: so they are only read, and
copied to the node's own folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from azcp_runtime.contract import PreflightError
from azcp_runtime.contract.image import ENV_SSH_KEYS
from azcp_runtime.ssh.state import write_private

if TYPE_CHECKING:
    from asyncssh import SSHKey

FOLDER: Final = "keys"
"""Of our own copies, below the state folder."""

_USUAL: Final = ("/etc/azcp/ssh", "~/.ssh", "/root/.ssh", "/home/mpiuser/.ssh")
_PRIVATE: Final = ("ssh-privatekey", "id_ed25519", "id_ecdsa", "id_rsa", "private")
_PUBLIC: Final = ("ssh-publickey", "id_ed25519.pub", "id_ecdsa.pub", "id_rsa.pub", "public")
_AUTHORIZED: Final = "authorized_keys"
_KNOWN: Final = "known_hosts"
_HOST_KEY: Final = "host_key"
_REMEDY: Final = f"mount the job's key pair and name its folder in {ENV_SSH_KEYS}"


@dataclass(frozen=True, slots=True)
class JobKeys:
    """What a folder of keys holds.

    Args:
        folder: where it was found.
        private: the job's private key; empty where a node has only the public one.
        authorized: who may come in, in the form of authorized_keys.
        known_hosts: host keys that are trusted without a certificate.
    """

    folder: Path
    private: bytes
    authorized: bytes
    known_hosts: bytes


def find_keys(env: Mapping[str, str], state: Path | None, named: str = "") -> JobKeys:
    """The first folder with a key in it: the one that is named, our own copies, then the usual places.

    Raises:
        PreflightError: there is none, or it cannot be read or parsed.
    """
    named = named or env.get(ENV_SSH_KEYS, "")
    if named:
        return _required(Path(named))
    refusals = []
    for folder in _usual_folders(env, state):
        try:
            found = _read_folder(folder)
        except PermissionError:
            refusals.append(f"{folder} is not readable for uid {os.geteuid()}")
            continue
        if found:
            return found
    raise PreflightError("no ssh key was found", cause="; ".join(refusals), remedy=_REMEDY)


def copy_keys(keys: JobKeys, state: Path) -> JobKeys:
    """The same keys in a folder that ssh accepts: 0700, its files 0600, all ours."""
    folder = state / FOLDER
    folder.mkdir(0o700, exist_ok=True)
    for name, content in (("id", keys.private), (_AUTHORIZED, keys.authorized), (_KNOWN, keys.known_hosts)):
        if content:
            write_private(folder / name, content)
        else:  # of an earlier start, with other keys
            (folder / name).unlink(missing_ok=True)
    return JobKeys(folder, keys.private, keys.authorized, keys.known_hosts)


def make_host_key(keys: JobKeys) -> tuple[Path, Path | None]:
    """A host key of this start, and a certificate for it where the job's private key is here to sign one.

    An image that held a host key would give the same one to all its users.

    Args:
        keys: our own copies.
    """
    from azcp_runtime.ssh.library import asyncssh

    host_key = asyncssh.generate_private_key("ssh-ed25519")
    path = keys.folder / _HOST_KEY
    write_private(path, host_key.export_private_key())
    write_private(path.with_name(f"{_HOST_KEY}.pub"), host_key.export_public_key())
    certificate = path.with_name(f"{_HOST_KEY}-cert.pub")
    if not keys.private:
        certificate.unlink(missing_ok=True)
        return path, None
    signed = parse_private(keys).generate_host_certificate(host_key.convert_to_public(), "azcp-sshd")
    write_private(certificate, signed.export_certificate())
    return path, certificate


def parse_private(keys: JobKeys) -> SSHKey:
    """The job's private key.

    Raises:
        PreflightError: it is no key, or has a passphrase that nobody could type.
    """
    from azcp_runtime.ssh.library import asyncssh

    if not keys.private:
        raise PreflightError(f"there is no private key in {keys.folder}", remedy=_REMEDY)
    try:
        return asyncssh.import_private_key(keys.private)
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
        raise PreflightError(
            f"the private key in {keys.folder} cannot be used: {error}",
            remedy="make one without a passphrase: ssh-keygen -t ed25519 -N ''",
        ) from error


def _usual_folders(env: Mapping[str, str], state: Path | None) -> Iterator[Path]:
    if state:
        yield state / FOLDER
    for name in _USUAL:
        if not name.startswith("~"):
            yield Path(name)
        elif home := env.get("HOME"):
            yield Path(home, name.removeprefix("~/"))


def _required(folder: Path) -> JobKeys:
    try:
        found = _read_folder(folder)
    except PermissionError as error:
        raise PreflightError(
            f"the keys in {folder} cannot be read by uid {os.geteuid()}",
            cause=str(error),
            remedy="give the Secret a defaultMode of 0444, or the pod an fsGroup; the copies are made 0600",
        ) from error
    if not found:
        raise PreflightError(f"there is no ssh key in {folder}", remedy=_REMEDY)
    return found


def _read_folder(folder: Path) -> JobKeys | None:
    private = _first(folder, ("id", *_PRIVATE))
    listed = _first(folder, (_AUTHORIZED,))
    public = listed or b"".join(_first(folder, (name,)) for name in _PUBLIC)
    if not private and not public:
        return None
    keys = JobKeys(folder, private, public, _first(folder, (_KNOWN,)))
    if listed or not private:
        return keys
    # Whatever public halves lie beside it, of several pairs perhaps: who has the private key may come in.
    own = parse_private(keys).export_public_key()
    return keys if own.split()[1] in public.split() else replace(keys, authorized=public + own)


def _first(folder: Path, names: tuple[str, ...]) -> bytes:
    for name in names:
        try:
            content = (folder / name).read_bytes()
        except PermissionError:
            raise
        except OSError:  # not there, or a folder or a circle of links: no file that could hold a key
            continue
        if content.strip():
            # Secrets written by hand lack the last line's end or carry a carriage return.
            return content.replace(b"\r\n", b"\n").strip() + b"\n"
    return b""
