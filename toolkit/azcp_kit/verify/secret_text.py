"""Secrets in files and in an image's history, by their values: a program that only speaks of keys is none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

LARGEST_BYTES: Final = 8 * 2**20
"""Of a text that is read; configuration and scripts are smaller."""

_BINARY_BYTES: Final = 8192
# Azurite's and the emulator's, which their documentation publishes.
_PUBLIC: Final = b"Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

# Each asks for what only a value has, its length; the plain letters before it are looked for first, which is
# fifty times as fast as the pattern.
_PATTERNS: Final = (
    (
        "a private key",
        (b"PRIVATE KEY-----",),
        rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----(?:\\n|\s|[\w-]+: [^\n]*\n){1,9}[A-Za-z0-9+/=]{32}",
    ),
    ("a private key", (b"PuTTY-User-Key-File",), rb"PuTTY-User-Key-File-\d: "),
    ("a SAS", (b"sig=",), rb"\bsig=(?:[A-Za-z0-9+/]|%[0-9A-Fa-f]{2}){40,}"),
    (
        "an account key",
        (b"AccountKey", b"STORAGE_KEY", b"storage_key"),
        rb"(?:AccountKey|STORAGE_KEY|storage_key)[\"']?\s*[=:]\s*[\"']?(?P<key>[A-Za-z0-9+/]{86}==)",
    ),
    ("a bearer token", (b"earer ",), rb"\b[Bb]earer\s+[A-Za-z0-9._~+/-]{30,}"),
    ("a token", (b".eyJ",), rb"\beyJ[A-Za-z0-9_-]{16,}\.eyJ[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    (
        "a token",
        (
            *(b"gh%c_" % letter for letter in b"pousr"),
            b"github_pat_",
            b"hf_",
            b"glpat-",
            b"nvapi-",
            b"pypi-AgE",
        ),
        rb"\b(?:gh[pousr]_|github_pat_|hf_|glpat-|nvapi-|pypi-AgE)[A-Za-z0-9_-]{20,}",
    ),
    ("an AWS key", (b"AKIA", b"ASIA"), rb"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
)
_COMPILED: Final = tuple((what, letters, re.compile(pattern)) for what, letters, pattern in _PATTERNS)
# A package's own description, as its authors published it: it may show what a token looks like.
_DESCRIPTION: Final = re.compile(r"[^/]+\.dist-info/METADATA$")
_PASSWORD_IN_URL: Final = re.compile(rb"://[^/\s:@]{1,256}:[^/\s@$]{1,256}@")
# Files whose purpose is to name a server: elsewhere such an address is an example.
_ADDRESS_FILES: Final = re.compile(
    r"(?:^|/)(?:pip\.conf|pip\.ini|\.pypirc|\.npmrc|\.condarc|\.wgetrc|\.curlrc|apt\.conf|auth\.conf|sources\.list|"
    r"environment|config)$|\.(?:conf|list|sources|ini|env|sh)$"
)
_SECRET_FILES: Final = re.compile(
    r"(?:^|/)(?:\.netrc|_netrc|\.git|\.git-credentials|\.pypirc|\.pgpass|\.dockercfg|\.docker/config\.json|"
    r"\.kube/config|\.aws/credentials|\.azure/[^/]+|id_(?:rsa|dsa|ecdsa|ed25519)|ssh_host_\w+_key)$"
)


def secrets_in(path: str, content: bytes) -> Iterator[str]:
    """What a file holds that must not be in an image; nothing of it is told."""
    if b"\0" in content[:_BINARY_BYTES] or _DESCRIPTION.search(path):
        return
    for what, letters, pattern in _COMPILED:
        if not any(each in content for each in letters):
            continue
        if any(match.groupdict().get("key") != _PUBLIC for match in pattern.finditer(content)):
            yield what
    if _ADDRESS_FILES.search(path) and _PASSWORD_IN_URL.search(content):
        yield "a password in an address"


def is_secret_file(path: str) -> bool:
    """Whether a file of that name is made to hold a secret, whatever is in it."""
    return _SECRET_FILES.search(path) is not None
