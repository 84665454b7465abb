"""The source of a run: who would ask, whether it is reached, and whether it lets itself be read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from azcp_runtime.contract import AzcpError
from azcp_runtime.doctor.check import Check, fail, ok
from azcp_runtime.doctor.gather import NodeReport, decode, encode
from azcp_runtime.mpi.ranks import Ranks
from azcp_runtime.source.location import BlobLocation, DirectoryLocation, Location

_IDENTITY: Final = "identity"


def check_source(location: Location) -> Iterator[Check]:
    """Whether this node reaches the source."""
    if isinstance(location, DirectoryLocation):
        yield _folder(location.path)
        return
    from azcp_runtime.preflight.reach import check_reach

    yield from check_reach(location)


def shared_access(
    ranks: Ranks, location: Location, auth: str, sas_file: Path | None, env: Mapping[str, str]
) -> tuple[Check, ...]:
    """What rank 0 finds of the credential and of what it opens, on every rank: as in a run, it alone asks.

    Args:
        ranks: the world.
        location: the source.
        auth: --auth.
        sas_file: --sas-file.
        env: the environment.
    """
    if not isinstance(location, BlobLocation):
        return ()
    if ranks.seat.rank:
        return decode(ranks.share(None)).checks
    checks = tuple(_access(ranks, location, auth, sas_file, env))
    ranks.share(encode(NodeReport(0, "", checks)))
    return checks


def _access(
    ranks: Ranks, location: BlobLocation, auth: str, sas_file: Path | None, env: Mapping[str, str]
) -> Iterator[Check]:
    from azcp_runtime.azure.credential import find_secret
    from azcp_runtime.azure.introduction import introduce
    from azcp_runtime.preflight.first_read import check_first_read

    lines: list[str] = []
    try:
        secret = find_secret(location, auth, sas_file, env)
        introduce(secret, location, env, lines.append, lists=True)
    except AzcpError as error:
        what = f"{error.what} ({error.cause})" if error.cause else error.what
        yield fail(_IDENTITY, what, error.remedy)
        return
    yield ok(_IDENTITY, "; ".join(lines) or "anonymous")
    yield check_first_read(location, secret, ranks.hear)


def _folder(path: Path) -> Check:
    if not path.is_dir():
        return fail("source", "no such folder on this node", "is the file system mounted?")
    if not os.access(path, os.R_OK | os.X_OK):
        return fail("source", "the folder cannot be read", "check its owner and mode")
    return ok("source", "a folder that can be read")
