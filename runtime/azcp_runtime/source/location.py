"""SOURCE on the command line: a Blob endpoint with container and prefix, or a directory."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from azcp_runtime.contract import UsageError

# ACCOUNT.blob.SUFFIX of every cloud, also as a DNS zone's (z01) and a private link's name.
_HOST_STYLE: Final = re.compile(r"([a-z0-9-]+)\.(?:z\d+\.)?(?:privatelink\.)?blob\.", re.IGNORECASE)
_OTHER_SERVICE: Final = re.compile(
    r"[a-z0-9-]+\.(?:z\d+\.)?(?:privatelink\.)?(dfs|file|queue|table|web)\.(?:core|storage)\.", re.IGNORECASE
)
_STRAY_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class BlobLocation:
    """A folder of blobs.

    Attributes:
        account_url: scheme, host and, for a local endpoint, the account; no trailing slash.
        account: the account's name, which a shared key signs.
        container: the container's name.
        prefix: the folder, empty or ending in a slash; as it is, not percent-encoded.
        sas: a shared access signature that came with the URL; never shown.
    """

    account_url: str
    account: str
    container: str
    prefix: str
    sas: str = field(default="", repr=False)

    def __str__(self) -> str:
        """The location without its signature, for messages and reports."""
        return f"{self.account_url}/{self.container}/{self.prefix}"


@dataclass(frozen=True, slots=True)
class DirectoryLocation:
    """A directory that every downloading rank can read, such as a parallel file system's."""

    path: Path

    def __str__(self) -> str:
        """The path, for messages and reports."""
        return str(self.path)


Location = BlobLocation | DirectoryLocation


def parse_source(text: str) -> Location:
    """Where SOURCE points.

    A host ``ACCOUNT.blob.…`` names the account, and the path begins with the container. Any other
    host, a domain of one's own too, is read as ``HOST/ACCOUNT/CONTAINER/PREFIX``, as emulators and
    caches have it: the first part of the path is the account, also over https.

    Raises:
        UsageError: the URL is malformed or has no account, container or host, its scheme is unknown,
            or it belongs to another service than Blob.
    """
    if "://" not in text:
        if not text:
            raise UsageError("SOURCE is empty", remedy="give a Blob URL or a directory")
        return DirectoryLocation(Path(text).absolute())
    url = _split(text)
    if url.scheme not in ("https", "http") or not url.hostname:
        raise UsageError(
            f"SOURCE scheme {url.scheme!r} is not supported",
            remedy="use https://ACCOUNT.blob.core.windows.net/CONTAINER/PREFIX, "
            "http://HOST:PORT/ACCOUNT/CONTAINER/PREFIX or a directory",
        )
    if url.username is not None or url.password is not None:
        raise UsageError("SOURCE must not hold a user name or password", remedy="use AZCP_SAS for a SAS")
    if other := _OTHER_SERVICE.match(url.netloc):
        host = url.netloc[: other.start(1)] + "blob" + url.netloc[other.end(1) :]
        raise UsageError(f"SOURCE {url.netloc} is not the Blob endpoint", remedy=f"write {host}")
    return _blob_location(url.scheme, url.netloc, url.path, url.query)


def _split(text: str) -> SplitResult:
    """The parts of a URL. What it says of a malformed one leaves out the query, for the SAS's sake."""
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError as error:
        raise UsageError("SOURCE is not a URL", cause=str(error)) from None
    if port == 0:
        raise UsageError("SOURCE is not a URL", cause="port 0")
    # urlsplit gives no fragment for a # at the very end either.
    if "#" in text:
        raise UsageError(
            "SOURCE holds a #, and what follows it is no part of a URL's path",
            remedy="write %23 for a # in a name",
        )
    return url


def _blob_location(scheme: str, netloc: str, path: str, query: str) -> BlobLocation:
    segments = path.lstrip("/")
    if host_style := _HOST_STYLE.match(netloc):
        # The secondary endpoint has a host name of its own, but the account signs with its own name.
        account = host_style[1].lower().removesuffix("-secondary")
        account_url = f"{scheme}://{netloc}"
    else:
        account, _, segments = segments.partition("/")
        account_url = f"{scheme}://{netloc}/{account}"
    container, _, prefix = segments.partition("/")
    if not account or not container:
        raise UsageError(
            f"SOURCE {scheme}://{netloc}{path} names no container",
            remedy="write https://ACCOUNT.blob.core.windows.net/CONTAINER/PREFIX "
            "or http://HOST:PORT/ACCOUNT/CONTAINER/PREFIX",
        )
    prefix = _decoded(prefix)
    if prefix and not prefix.endswith("/"):
        prefix += "/"
    return BlobLocation(account_url, account, _decoded(container), prefix, sas=query)


def _decoded(text: str) -> str:
    """A name out of a URL, which is percent-encoded once; the only place where a name is decoded."""
    if _STRAY_PERCENT.search(text):
        raise UsageError(f"SOURCE is not percent-encoded: {text}", remedy="write %25 for a % in a name")
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise UsageError(
            f"SOURCE is not UTF-8 once decoded: {text}", remedy="the names of blobs are UTF-8"
        ) from None
