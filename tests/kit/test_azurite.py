"""The life of the local Blob endpoint: it answers inside the block and is gone after it, however it ends."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from azcp_kit.azurite import find_azurite, run_azurite
from azcp_runtime.contract import PreflightError
from azure.storage.blob import BlobServiceClient

from tests.lab.requirements import missing
from tests.lab.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path


needs_azurite = pytest.mark.azurite
HOLD_IT_OPEN = """
import sys
from pathlib import Path
from azcp_kit.azurite import run_azurite
with run_azurite(Path(sys.argv[1])) as azurite:
    print(azurite.endpoint, flush=True)
    sys.stdin.read()
"""


def answers(endpoint: str) -> bool:
    parts = urlsplit(endpoint)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port or 0, timeout=2)
    try:
        connection.request("GET", parts.path)
        connection.getresponse()
    except OSError:
        return False
    finally:
        connection.close()
    return True


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    if find_azurite() is None:
        missing("azurite", "Azurite is not installed: put Node.js with npm on PATH, then `make clean venv`")
    return tmp_path


@needs_azurite
def test_a_blob_put_inside_the_block_comes_back(folder: Path) -> None:
    with (
        run_azurite(folder) as azurite,
        BlobServiceClient(azurite.endpoint, credential=azurite.key) as service,
        service.create_container("data") as container,
    ):
        container.upload_blob("a b%2F#+/ü", b"hello")
        assert container.download_blob("a b%2F#+/ü").readall() == b"hello"
        assert azurite.log.exists()


@needs_azurite
def test_nothing_answers_after_the_block(folder: Path) -> None:
    with run_azurite(folder) as azurite:
        assert answers(azurite.endpoint)
    assert not answers(azurite.endpoint)


@needs_azurite
def test_it_stops_when_the_body_raises(folder: Path) -> None:
    with pytest.raises(KeyError), run_azurite(folder) as azurite:
        raise KeyError
    assert not answers(azurite.endpoint)


@needs_azurite
def test_it_dies_with_a_parent_that_is_killed(folder: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_IT_OPEN, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        endpoint = parent.stdout.readline().strip()
        assert answers(endpoint)
        parent.send_signal(signal.SIGKILL)
    wait_until(lambda: not answers(endpoint), 20, "Azurite is gone")


@needs_azurite
def test_the_key_is_not_in_its_repr(folder: Path) -> None:
    with run_azurite(folder) as azurite:
        assert azurite.key not in repr(azurite)


@needs_azurite
def test_a_taken_port_is_reported_with_the_log(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PreflightError, match=r"azurite\.log"), run_azurite(folder, port):
            pass


def test_without_node_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_azurite() is None
    with pytest.raises(PreflightError, match=r"install Node\.js"), run_azurite(tmp_path):
        pass
