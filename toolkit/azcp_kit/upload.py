"""Puts a folder into a container of a Blob endpoint; the one module of the toolkit that imports the SDK."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from azcp_runtime.contract import PreflightError
from azure.core.exceptions import AzureError
from azure.storage.blob import BlobServiceClient, ContainerClient

if TYPE_CHECKING:
    from pathlib import Path

    from azcp_kit.azurite import Azurite

THREADS: Final = 4
BLOCK_BYTES: Final = 8 * 2**20


def upload_folder(folder: Path, azurite: Azurite, container: str) -> int:
    """Upload every file under `folder` as a blob of the same relative name; gives the number of blobs.

    Raises:
        PreflightError: the endpoint refused one of them.
    """
    # The SDK logs each request and its headers at INFO.
    logging.getLogger("azure").setLevel(logging.WARNING)
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    # The SDK takes the account's name from a URL of loopback alone.
    credential = {"account_name": azurite.account, "account_key": azurite.key}
    service = BlobServiceClient(
        azurite.endpoint, credential=credential, max_block_size=BLOCK_BYTES, max_single_put_size=BLOCK_BYTES
    )
    try:
        with service, service.create_container(container) as client, ThreadPoolExecutor(THREADS) as pool:
            for _ in pool.map(lambda path: _upload(client, folder, path), paths):
                pass
    except AzureError as error:
        raise PreflightError(
            "the data set could not be uploaded",
            cause=str(error).splitlines()[0],
            remedy=f"read {azurite.log}",
        ) from error
    return len(paths)


def _upload(client: ContainerClient, folder: Path, path: Path) -> None:
    with path.open("rb") as file:
        client.upload_blob(path.relative_to(folder).as_posix(), file, length=path.stat().st_size)
