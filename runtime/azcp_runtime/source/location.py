"""SOURCE on the command line: a Blob endpoint with container and prefix, or a directory."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from azcp_runtime.contract import UsageError

_HOST_STYLE: Final = re.compile(r"[a-z0-9-]+\.(blob|z\d+\.blob)\.", re.IGNORECASE)


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

    Raises:
        UsageError: the URL has no account, container or host, or its scheme is unknown.
    """
    if "://" not in text:
        if not text:
            raise UsageError("SOURCE is empty", remedy="give a Blob URL or a directory")
        return DirectoryLocation(Path(text).absolute())
    url = urlsplit(text)
    if url.scheme not in ("https", "http") or not url.hostname:
        raise UsageError(
            f"SOURCE scheme {url.scheme!r} is not supported",
            remedy="use https://ACCOUNT.blob.core.windows.net/CONTAINER/PREFIX, "
            "http://HOST:PORT/ACCOUNT/CONTAINER/PREFIX or a directory",
        )
    if url.username or url.password:
        raise UsageError("SOURCE must not hold a user name or password", remedy="use AZCP_SAS for a SAS")
    return _blob_location(url.scheme, url.netloc, url.path, url.query)


def _blob_location(scheme: str, netloc: str, path: str, query: str) -> BlobLocation:
    segments = path.lstrip("/")
    if _HOST_STYLE.match(netloc):
        account, account_url = netloc.partition(".")[0], f"{scheme}://{netloc}"
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
    # A URL is percent-encoded once; this is the only place where a name is decoded.
    prefix = unquote(prefix, errors="strict")
    if prefix and not prefix.endswith("/"):
        prefix += "/"
    return BlobLocation(account_url, account, unquote(container), prefix, sas=query)
