"""[list]: rank 0 asks the source once and sends every rank the listing and the credential."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azcp_runtime.contract import ListError, UsageError
from azcp_runtime.mpi.ranks import Ranks
from azcp_runtime.options import Options
from azcp_runtime.source.directory import list_directory, pinned_files
from azcp_runtime.source.listing import Entry, Listing, decode_listing, make_listing, select
from azcp_runtime.source.location import BlobLocation, DirectoryLocation, Location, parse_source
from azcp_runtime.source.names import refuse_unsafe, shown
from azcp_runtime.source.shardlist import read_below

_SHOWN: Final = 20
_HEAR_EVERY: Final = 1000


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach the source: kind and value of the secret, empty for a directory.

    It goes from rank 0 to the others in memory only.
    """

    kind: str
    value: str

    def __repr__(self) -> str:
        """Without the value."""
        return f"Access({self.kind})"


def list_stage(ranks: Ranks, options: Options, location: Location) -> tuple[Listing, Access]:
    """The listing, the same on every rank.

    Raises:
        ListError: on rank 0, when the source cannot be listed or holds names no file can have.
    """
    if ranks.seat.rank != 0:
        kind, value = json.loads(ranks.share(None))
        return decode_listing(ranks.share(None)), Access(kind, value)
    access = _find_access(options, location)
    entries = _heard(ranks, _entries(options, location, access))
    listing = _checked(make_listing(entries), skip_archived=options.skip_archived)
    ranks.share(json.dumps([access.kind, access.value]).encode())
    ranks.share(listing.encoded())
    return listing, access


def _heard(ranks: Ranks, entries: Iterable[Entry]) -> Iterable[Entry]:
    """The entries, while rank 0 hears of the others: a listing may take minutes."""
    for number, entry in enumerate(entries):
        if number % _HEAR_EVERY == 0:
            ranks.hear()
        yield entry


def source_of(options: Options, *, is_lister: bool) -> Location:
    """SOURCE, checked as far as it can be without asking it."""
    location = parse_source(options.source)
    if isinstance(location, DirectoryLocation):
        _check_directory(location.path, options, is_lister=is_lister and not options.shardlist)
    return location


def _check_directory(path: Path, options: Options, *, is_lister: bool) -> None:
    # Whoever reads it finds out; rank 0 must, unless a list spares it.
    if is_lister and not path.is_dir():
        problem = "is not a directory" if path.exists() else "does not exist"
        raise ListError(f"the source {path} {problem}", remedy="is the file system mounted?")
    inside = os.path.realpath(options.dest) + "/"
    if inside.startswith(os.path.realpath(path) + "/"):
        raise UsageError(f"DEST {options.dest} lies inside SOURCE {path}", remedy="choose another DEST")
    if (os.path.realpath(path) + "/").startswith(inside):
        raise UsageError(f"SOURCE {path} lies inside DEST {options.dest}", remedy="choose another DEST")


def _find_access(options: Options, location: Location) -> Access:
    if isinstance(location, DirectoryLocation):
        return Access("", "")
    from azcp_runtime.azure.credential import environment, find_secret

    secret = find_secret(location, options.auth, options.sas_file, environment())
    return Access(secret.kind, secret.value)


def _entries(options: Options, location: Location, access: Access) -> Iterable[Entry]:
    if isinstance(location, BlobLocation):
        from azcp_runtime.azure.account import list_account, pinned
        from azcp_runtime.azure.credential import Secret
        from azcp_runtime.azure.retry import RetryLimits

        secret = Secret(access.kind, access.value)
        limits = RetryLimits(options.max_retries, options.retry_time)
        if options.shardlist:
            return pinned(location, secret, limits, read_below(options.shardlist, location.prefix))
        return list_account(location, secret, limits)
    if options.shardlist:
        return pinned_files(location.path, read_below(options.shardlist, ""))
    return list_directory(location.path)


def _checked(listing: Listing, *, skip_archived: bool) -> Listing:
    refuse_unsafe(listing.names)
    if not listing.archived:
        return listing
    if skip_archived:
        archived = set(listing.archived)
        return select(listing, [file for file in range(len(listing)) if file not in archived])
    names = ", ".join(shown(listing.names[file]) for file in listing.archived[:_SHOWN])
    more = f" and {len(listing.archived) - _SHOWN} more" if len(listing.archived) > _SHOWN else ""
    raise ListError(
        f"{len(listing.archived)} blobs are in the archive tier: {names}{more}",
        remedy="rehydrate them, or leave them out with --skip-archived",
    )
