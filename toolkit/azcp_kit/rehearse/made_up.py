"""Secrets that a manifest refers to and does not hold: they exist in the cluster, and are made up here."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from azcp_kit.rehearse.account import MADE_UP_SAS, sas_files
from azcp_kit.rehearse.fields import Fields
from azcp_kit.rehearse.key_pair import KeyPair, make_key_pair
from azcp_kit.rehearse.model import Made
from azcp_kit.rehearse.pod import Pod
from azcp_kit.rehearse.store import Store

MADE_UP: Final = b"made-up-by-the-rehearsal"
_PRIVATE: Final = frozenset({"ssh-privatekey", "id_rsa", "id_ecdsa", "id_ed25519"})
_PUBLIC: Final = frozenset({"ssh-publickey", "authorized_keys", *(f"{name}.pub" for name in _PRIVATE)})
_KEY_NAMES: Final = ("ssh-privatekey", "ssh-publickey")
"""What a Secret of keys holds that is mounted as a whole: azcp-kit's own names, and mpi-operator's."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One use of a Secret: a key of it; empty for all of it, with what hints at what that is."""

    namespace: str
    name: str
    key: str
    hint: str = ""


def make_up(pods: Iterable[Pod], store: Store) -> tuple[Made, ...]:
    """The Secrets that are not in the store and that some container cannot do without.

    Args:
        pods: all of them.
        store: what the manifest holds.
    """
    wanted: dict[tuple[str, str], dict[str, None]] = {}
    for use in (use for pod in pods for use in _uses(pod)):
        if (use.namespace, use.name) not in store.secrets:
            names = [use.key] if use.key else _KEY_NAMES if "ssh" in use.hint.lower() else ()
            wanted.setdefault((use.namespace, use.name), {}).update(dict.fromkeys(names))
    keys = make_key_pair()
    return tuple(
        Made(namespace, name, {key: _value(key, keys) for key in found})
        for (namespace, name), found in wanted.items()
    )


def _value(key: str, keys: KeyPair) -> bytes:
    if key in _PRIVATE:
        return keys.private
    if key in _PUBLIC:
        return keys.public
    return MADE_UP_SAS if "sas" in key.lower() else MADE_UP


def _uses(pod: Pod) -> Iterator[_Wanted]:
    namespace = pod.identity.namespace
    for container in pod.containers:
        for entry in container.fields.each("env"):
            reference = entry.at("valueFrom", "secretKeyRef")
            if reference.raw and not reference.flag("optional"):
                yield _Wanted(namespace, reference.text("name"), reference.text("key"))
        for source in container.fields.each("envFrom"):
            reference = source.at("secretRef")
            if reference.raw and not reference.flag("optional"):
                yield _Wanted(namespace, reference.text("name"), "")
    for volume in pod.volumes.values():
        for reference in _secrets_of(volume.fields):
            if not reference.flag("optional"):
                yield from _files_wanted(pod, volume.name, reference)


def _secrets_of(volume: Fields) -> Iterator[Fields]:
    if volume.has("secret"):
        yield volume.at("secret")
    for source in volume.at("projected").each("sources"):
        if source.has("secret"):
            yield source.at("secret")


def _files_wanted(pod: Pod, volume: str, reference: Fields) -> Iterator[_Wanted]:
    namespace = pod.identity.namespace
    name = reference.text("secretName") or reference.text("name")
    mounts = [(c, mount) for c in pod.containers for mount in c.mounts if mount.volume == volume]
    items = [item.text("key") for item in reference.each("items")]
    for key in items:
        yield _Wanted(namespace, name, key)
    if items:
        return
    yield _Wanted(namespace, name, "", hint=" ".join([name, volume, *(mount.path for _, mount in mounts)]))
    for container, mount in mounts:
        if mount.sub_path:
            yield _Wanted(namespace, name, mount.sub_path)
        for path in sas_files((*container.command, *container.args)):
            if posixpath.dirname(path) == mount.path:
                yield _Wanted(namespace, name, posixpath.basename(path))
