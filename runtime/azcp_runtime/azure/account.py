"""The account's listing, through azure-storage-blob."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError
from azure.storage.blob import BlobProperties, ContainerClient

from azcp_runtime.azure.credential import Secret, asker_of, sdk_credential
from azcp_runtime.azure.pages import FOLDER_MARK, PageTransport, quoted_etag
from azcp_runtime.azure.refusals import Asker, Refusal, clock_of, remedy_for
from azcp_runtime.azure.retry import ListRetryPolicy, RetryLimits
from azcp_runtime.contract import ENV_ACCOUNT_KEY, ENV_SAS, ListError
from azcp_runtime.source.listing import MD5_BYTES, Entry
from azcp_runtime.source.location import BlobLocation
from azcp_runtime.source.names import shown

_NO_LISTING: Final = (ValueError, TypeError, AttributeError, KeyError, IndexError, SyntaxError)
"""What the SDK's parser raises for XML, sizes and dates that are none (ParseError is a SyntaxError)."""

_CONNECT_TIMEOUT_S: Final = 20.0
_READ_TIMEOUT_S: Final = 60.0
_PROPERTY_THREADS: Final = 16
_PAGE_NAMES: Final = 5000


def list_account(
    location: BlobLocation, secret: Secret, limits: RetryLimits, page_names: int = _PAGE_NAMES
) -> Generator[Entry]:
    """Every blob below the location's prefix, names cut to what follows it.

    Args:
        location: the source.
        secret: the credential.
        limits: when to give up.
        page_names: names in one answer, the service's most where it is not said.

    Raises:
        ListError: the account refused or could not be reached, or not even the folder is there.
    """
    exists = not location.prefix
    try:
        transport = PageTransport(
            location.prefix,
            connect_s=min(_CONNECT_TIMEOUT_S, limits.retry_time_s),
            read_s=min(_READ_TIMEOUT_S, limits.retry_time_s),
        )
        with _container(location, secret, limits, transport) as container:
            pages = container.list_blobs(
                name_starts_with=location.prefix or None, include=["metadata"], results_per_page=page_names
            ).by_page()
            before = None
            for page in pages:
                left = [_entry(properties, location.prefix) for properties in page]
                for entry in chain(transport.take(), left):
                    exists = True
                    yield entry
                marker = getattr(pages, "continuation_token", None)
                if marker and marker == before:
                    raise ListError(f"the listing of {location} goes round in a circle")
                before = marker
            if not exists:
                raise _nothing(location, container)
    except AzureError as error:
        raise _list_error(location, asker_of(location, secret), error) from None
    except _NO_LISTING as error:
        raise ListError(
            f"{location} answered with something that is no listing ({type(error).__name__})",
            cause="a proxy or a portal in between",
        ) from None


def pinned(
    location: BlobLocation, secret: Secret, limits: RetryLimits, entries: Iterable[Entry]
) -> Iterator[Entry]:
    """The entries, those without ETag replaced by what the account says of them now.

    Ranges of one blob are read by several ranks, and only an ETag ties them together: a date has
    seconds. Empty blobs are asked for too, for nothing else would notice that one is gone.

    Raises:
        ListError: a blob is gone, or its size or date differs from the list's.
    """
    with ExitStack() as clients, ThreadPoolExecutor(_PROPERTY_THREADS) as threads:
        mine = threading.local()

        def ask(entry: Entry) -> Entry:
            if entry.etag and entry.size:
                return entry
            # A client for each thread: the SDK's token policy would lose its token to another's refusal.
            if not hasattr(mine, "container"):
                mine.container = clients.enter_context(_container(location, secret, limits))
            return _asked(location, mine.container, entry)

        try:
            yield from threads.map(ask, entries)
        except AzureError as error:
            raise _list_error(location, asker_of(location, secret), error) from None


def _asked(location: BlobLocation, container: ContainerClient, entry: Entry) -> Entry:
    name = (location.prefix.encode() + entry.name).decode("utf-8", "surrogateescape")
    found = _entry(container.get_blob_client(name).get_blob_properties(), location.prefix)
    if found.size != entry.size:
        raise ListError(f"{shown(entry.name)} has {found.size} bytes, the list says {entry.size}")
    if entry.modified not in (0, found.modified) or entry.etag not in ("", found.etag):
        raise ListError(f"{shown(entry.name)} has changed since the list was made", remedy="list again")
    return found


def _container(
    location: BlobLocation, secret: Secret, limits: RetryLimits, transport: PageTransport | None = None
) -> ContainerClient:
    credential: Any = sdk_credential(secret, location.account)
    return ContainerClient(
        location.account_url,
        location.container,
        credential=credential,
        retry_policy=ListRetryPolicy(limits),
        transport=transport,
        connection_timeout=min(_CONNECT_TIMEOUT_S, limits.retry_time_s),
        read_timeout=min(_READ_TIMEOUT_S, limits.retry_time_s),
    )


def _entry(properties: BlobProperties, prefix: str) -> Entry:
    metadata = {key.lower(): value for key, value in (properties.metadata or {}).items()}
    name = properties.name[len(prefix) :].encode("utf-8", "surrogatepass")
    md5 = bytes(properties.content_settings.content_md5 or b"")
    return Entry(
        name,
        properties.size,
        etag=quoted_etag(name, properties.etag or ""),
        modified=int(properties.last_modified.timestamp()) if properties.last_modified else 0,
        md5=md5 if len(md5) == MD5_BYTES else b"",
        tier=str(properties.blob_tier or ""),
        is_folder=str(metadata.get(FOLDER_MARK, "")).lower() == "true",
    )


def _nothing(location: BlobLocation, container: ContainerClient) -> ListError:
    """Why nothing was listed: SOURCE may be a blob itself."""
    name = location.prefix.removesuffix("/")
    folder, _, last = name.rpartition("/")
    with suppress(AzureError):
        if last and not _entry(container.get_blob_client(name).get_blob_properties(), "").is_folder:
            above = replace(location, prefix=f"{folder}/" if folder else "")
            return ListError(
                f"{str(location).removesuffix('/')} is a blob",
                remedy=f"use its folder {above} with --include {shown(last.encode())}",
            )
    return ListError(
        f"nothing lies below {location}", remedy="SOURCE is a folder; check the container and the prefix"
    )


def _list_error(location: BlobLocation, asker: Asker, error: AzureError) -> ListError:
    if isinstance(error, HttpResponseError) and error.status_code:
        code = _text(getattr(error, "error_code", ""))
        refused = _refusal(error, error.status_code, code)
        remedy = _missing(code, asker) or remedy_for(refused, asker, time.time())
        return ListError(f"cannot list {location}: HTTP {error.status_code} {code}".rstrip(), remedy=remedy)
    first_line = str(error).strip().partition("\n")[0]
    remedy = "check the account's name, and that this machine reaches it"
    if isinstance(error, ClientAuthenticationError):
        remedy = f"set {ENV_SAS} or {ENV_ACCOUNT_KEY}, sign in with az login, or use --auth anonymous"
    return ListError(f"cannot list {location}: {type(error).__name__}: {first_line}", remedy=remedy)


def _missing(code: str, asker: Asker) -> str:
    """What to say where the account or the container is not there, or does not show itself."""
    if code == "ContainerNotFound":
        return "the container does not exist"
    if code != "ResourceNotFound":
        return ""
    found = "no such account or container here"
    # A container that is not public is denied to those who do not say who they are.
    unseen = f"{found}, or it is not public and wants a SAS, a key or an identity"
    return unseen if asker.kind == "anonymous" else found


def _refusal(error: HttpResponseError, status: int, code: str) -> Refusal:
    more = getattr(error, "additional_info", None) or {}
    detail = str(more.get("AuthenticationErrorDetail", ""))
    headers: Mapping[str, str] = getattr(error.response, "headers", {})
    return Refusal(status, code, detail, clock_of(headers))


def _text(code: object) -> str:
    """An error code, which the SDK gives as a string or as a member of its enumeration."""
    return str(getattr(code, "value", code) or "")
