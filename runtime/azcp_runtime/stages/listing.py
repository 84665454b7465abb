"""[list]: rank 0 asks the source once and sends every rank the listing and the credential."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from azcp_runtime.contract import ListError, UsageError
from azcp_runtime.mpi.ranks import Ranks
from azcp_runtime.options import Options
from azcp_runtime.source.directory import list_directory, pinned_files
from azcp_runtime.source.listing import Entry, Listing, decode_listing, make_listing, select
from azcp_runtime.source.location import BlobLocation, DirectoryLocation, Location, parse_source
from azcp_runtime.source.names import refuse_unsafe, shown
from azcp_runtime.source.patterns import chosen
from azcp_runtime.source.shardlist import read_below

if TYPE_CHECKING:
    from azcp_runtime.azure.credential import Secret

_SHOWN: Final = 20
_HEAR_EVERY: Final = 1000


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach the source: kind and value of the secret, empty for a directory.

    It goes from rank 0 to the others in memory only.

    Attributes:
        kind: sas, key, identity or anonymous.
        value: the SAS, key or token.
        which: the identity that was named.
        file: the file that holds the SAS and may hold another later.
        left: for how many seconds the value is valid; None for one that is used until it is refused.
        expires: when a SAS ends by its own words.
    """

    kind: str
    value: str
    which: str = ""
    file: str = ""
    left: float | None = None
    expires: float | None = None

    def __repr__(self) -> str:
        """Without the value."""
        return f"Access({self.kind})"


def list_stage(
    ranks: Ranks, options: Options, location: Location, note: Callable[[str], None]
) -> tuple[Listing, Access]:
    """The listing, the same on every rank.

    Args:
        ranks: the world.
        options: the command line.
        location: SOURCE.
        note: says a line on standard error.

    Raises:
        ListError: on rank 0, when the source cannot be listed or holds names no file can have.
    """
    if ranks.seat.rank != 0:
        shared = json.loads(ranks.share(None))
        return decode_listing(ranks.share(None)), Access(**shared)
    access = _find_access(options, location, note)
    entries = _heard(ranks, _entries(options, location, access))
    listing = chosen(make_listing(entries), options.include, options.exclude)
    listing = _checked(listing, skip_archived=options.skip_archived)
    access = _renewed(access)
    ranks.share(json.dumps(asdict(access)).encode())
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


def _find_access(options: Options, location: Location, note: Callable[[str], None]) -> Access:
    if isinstance(location, DirectoryLocation):
        return Access("", "")
    from azcp_runtime.azure.credential import environment, find_secret
    from azcp_runtime.azure.introduction import introduce

    secret = find_secret(location, options.auth, options.sas_file, environment())
    expires = introduce(secret, location, environment(), note, lists=not options.shardlist)
    file = str(secret.file) if secret.file else ""
    return Access(secret.kind, secret.value, secret.which, file, expires=expires)


def _renewed(access: Access) -> Access:
    """With the token of this moment: the listing may have outlived the first one."""
    if access.kind != "identity":
        return access
    from azcp_runtime.azure.credential import shared_token

    token = shared_token(access.which)
    return replace(access, value=token.current(), left=token.left_s())


def secret_of(access: Access) -> Secret:
    """The secret of a Blob location."""
    from azcp_runtime.azure.credential import Secret

    # A token is no secret of its own: who holds it has it renewed.
    value = "" if access.kind == "identity" else access.value
    return Secret(access.kind, value, file=Path(access.file) if access.file else None, which=access.which)


def _entries(options: Options, location: Location, access: Access) -> Iterable[Entry]:
    if isinstance(location, BlobLocation):
        from azcp_runtime.azure.account import list_account, pinned
        from azcp_runtime.azure.retry import RetryLimits

        secret = secret_of(access)
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
        sizes = sum(listing.sizes[file] for file in archived)
        counted = f"{len(archived)} archived blobs, {sizes} bytes, left out (--skip-archived)"
        print(f"azcp-distribute: {counted}", file=sys.stderr, flush=True)
        return select(listing, [file for file in range(len(listing)) if file not in archived])
    names = ", ".join(shown(listing.names[file]) for file in listing.archived[:_SHOWN])
    more = f" and {len(listing.archived) - _SHOWN} more" if len(listing.archived) > _SHOWN else ""
    raise ListError(
        f"{len(listing.archived)} blobs are in the archive tier: {names}{more}",
        remedy="rehydrate them, or leave them out with --skip-archived",
    )
