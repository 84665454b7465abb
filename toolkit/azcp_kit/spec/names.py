"""What a name may be, by what it becomes: a DNS label, a label's value, an image, a path, a variable."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

LONGEST_LABEL: Final = 63
_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_DNS_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?", re.ASCII)
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_RESOURCE: Final = re.compile(r"[a-z0-9][-a-z0-9.]*/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)
_IMAGE: Final = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?/)?"  # a registry
    r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?",
    re.ASCII,
)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_GUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
_QUANTITY: Final = re.compile(r"[0-9]{1,15}(\.[0-9]{1,9})?(m|k|[KMGTPE]i|[MGTPE])?", re.ASCII)
_LONGEST_DNS_NAME: Final = 253
_SYSTEM: Final = frozenset(
    map(
        PurePosixPath,
        ("/bin", "/boot", "/etc", "/lib", "/lib64", "/opt", "/run", "/sbin", "/usr", "/var"),
    )
)
_TAKEN: Final = tuple(map(PurePosixPath, ("/dev", "/etc/azcp", "/opt/azcp", "/proc", "/run/azcp", "/sys")))
"""With all that is below them."""


def dns_label(text: str) -> str:
    """A name of a pod or a Service: part of a host name."""
    if len(text) > LONGEST_LABEL:
        return f"has {len(text)} characters, {len(text) - LONGEST_LABEL} more than a DNS label may"
    return _unless(_DNS_LABEL, text, "is no DNS label: lower-case letters, digits and dashes inside")


def object_label(text: str) -> str:
    """A Service's name: since it is asked of the resolver, it begins with a letter (RFC 1035)."""
    return dns_label(text) or (
        "begins with a digit, which a Service's name must not" if text[0].isdigit() else ""
    )


def object_name(text: str) -> str:
    """A name of a Secret, a queue or a storage class."""
    if len(text) > _LONGEST_DNS_NAME:
        return f"has {len(text)} characters, at most {_LONGEST_DNS_NAME} are allowed"
    return _unless(
        _DNS_NAME, text, "is no Kubernetes name: lower-case letters, digits, dashes and dots inside"
    )


def queue(text: str) -> str:
    """A name of a queue, which is the value of a label too."""
    return object_name(text) or label_value(text)


def label_key(text: str) -> str:
    """A name of a label, with or without a prefix."""
    prefix, slash, name = text.rpartition("/")
    if slash and object_name(prefix):
        return "has a prefix that is no DNS name"
    return label_value(name) or ("is empty" if not name else "")


def label_value(text: str) -> str:
    """A value of a label or of a node selector."""
    if len(text) > LONGEST_LABEL:
        return f"has {len(text)} characters, a label's value has at most {LONGEST_LABEL}"
    return _unless(_LABEL_VALUE, text, "is no label: letters, digits, and -_. inside")


def any_text(text: str) -> str:
    """An annotation's or a variable's value: anything that a process can be given."""
    if "\0" in text:
        return "has a NUL character in it"
    return "is no text in UTF-8" if _SURROGATE.search(text) else ""


def variable(text: str) -> str:
    """A name of an environment variable."""
    return _unless(_VARIABLE, text, "is no name of a variable")


def resource(text: str) -> str:
    """A name of an extended resource, such as nvidia.com/gpu."""
    return _unless(_RESOURCE, text, "is no resource name such as nvidia.com/gpu or rdma/ib")


def quantity(text: str) -> str:
    """An amount of CPU or memory in Kubernetes' own form."""
    return _unless(_QUANTITY, text, "is no Kubernetes quantity such as 8, 500m or 64Gi")


def image(text: str) -> str:
    """A reference to an image."""
    return _unless(_IMAGE, text, "is no image reference: write [HOST/]NAME[:TAG]")


def guid(text: str) -> str:
    """A client id of an identity."""
    return _unless(_GUID, text, "is no client id: 8-4-4-4-12 hexadecimal digits")


def folder(text: str) -> str:
    """A path in a pod: absolute, and no way around."""
    path = PurePosixPath(text)
    if not path.is_absolute():
        return "is not absolute"
    if ".." in path.parts or ":" in text:
        return "holds .. or a colon, which Kubernetes refuses in a mount path"
    return "" if path != PurePosixPath("/") else "is the root of the file system"


def mount(text: str) -> str:
    """A folder over which a volume may lie: not one that the image, the system or we need."""
    path = PurePosixPath(text)
    taken = path in _SYSTEM or any(own in (path, *path.parents) for own in _TAKEN)
    return folder(text) or ("would hide what the container needs there" if taken else "")


def _unless(pattern: re.Pattern[str], text: str, what: str) -> str:
    return "" if pattern.fullmatch(text) else what
