"""A data set into a real Blob service, in parallel, single-shot and in blocks as each blob says."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from azcp_runtime.contract import ENV_ACCOUNT_KEY
from azure.storage.blob import ContainerClient, ContentSettings

if TYPE_CHECKING:
    from azcp_kit.azurite import Azurite

    from tests.lab.dataset import Blob, DataSet

UPLOADERS: Final = 8
BLOCK_BYTES: Final = 8 << 20


def upload(data_set: DataSet, azurite: Azurite, container: str, prefix: str) -> None:
    """Put every blob and marker under `prefix` of `container`, which is made if it is absent."""
    whole = _client(azurite, container, max_single_put_bytes=BLOCK_BYTES)
    # At least one byte goes single-shot, so an empty blob in blocks is not to be had.
    blocks = _client(azurite, container, max_single_put_bytes=1)
    with whole, blocks, ThreadPoolExecutor(UPLOADERS) as uploaders:
        if not whole.exists():
            whole.create_container()
        jobs = [
            uploaders.submit(_put, blocks if blob.in_blocks else whole, blob, prefix)
            for blob in data_set.blobs
        ]
        jobs += [
            uploaders.submit(_put_marker, whole, prefix + marker.name, dict(marker.metadata))
            for marker in data_set.markers
        ]
        for job in jobs:
            job.result()


def blob_url(endpoint: str, container: str, prefix: str = "") -> str:
    """The source that azcp-distribute is given."""
    return f"{endpoint}/{container}/{quote(prefix)}"


def account_key(azurite: Azurite) -> dict[str, str]:
    """The environment that lets azcp-distribute in."""
    return {ENV_ACCOUNT_KEY: azurite.key}


def _client(azurite: Azurite, container: str, max_single_put_bytes: int) -> ContainerClient:
    credential = {"account_name": azurite.account, "account_key": azurite.key}
    return ContainerClient(
        azurite.endpoint,
        container,
        credential=credential,
        max_single_put_size=max_single_put_bytes,
        max_block_size=BLOCK_BYTES,
    )


def _put(client: ContainerClient, blob: Blob, prefix: str) -> None:
    # The SDK reads a stream block by block; bytes would hold a blob of gigabytes in memory.
    client.upload_blob(
        prefix + blob.name,
        blob.content.pieces(),
        length=blob.content.size,
        content_settings=ContentSettings(),
    )


def _put_marker(client: ContainerClient, name: str, metadata: dict[str, str]) -> None:
    client.upload_blob(name, b"", metadata=metadata)
