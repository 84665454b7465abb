"""(l) A real listing of very many blobs: requests, CPU seconds and memory of the rank that lists."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

from dataset import MIB
from launch import RunFailedError
from table import Table, at_most

_PAGE: Final = 5000
"""Blobs in an answer of the service, at most."""

_AIM_MIB: Final = 1024
_BLOB: Final = (
    "<Blob><Name>shards/{folder:05}/sample-{index:07}.bin</Name><Properties>"
    "<Creation-Time>Mon, 01 Jan 2024 00:00:00 GMT</Creation-Time>"
    "<Last-Modified>Mon, 01 Jan 2024 00:00:00 GMT</Last-Modified><Etag>0x8DC{index:013X}</Etag>"
    "<Content-Length>{size}</Content-Length><Content-Type>application/octet-stream</Content-Type>"
    "<Content-Encoding /><Content-Language /><Content-MD5>AAECAwQFBgcICQoLDA0ODw==</Content-MD5>"
    "<Cache-Control /><Content-Disposition /><BlobType>BlockBlob</BlobType><AccessTier>Hot</AccessTier>"
    "<AccessTierInferred>true</AccessTierInferred><LeaseStatus>unlocked</LeaseStatus>"
    "<LeaseState>available</LeaseState><ServerEncrypted>true</ServerEncrypted></Properties>"
    "<OrMetadata /></Blob>"
)


def measure(*, quick: bool = False) -> list[Table]:
    """Listings of two sizes, so that what grows with the number of blobs can be told from the rest."""
    counts = (10_000, 50_000) if quick else (100_000, 1_000_000)
    return [
        Table(
            "(l) azcp-distribute --stage list, an account on loopback that answers 5,000 blobs at a time",
            ("blobs", "requests", "of blobs", "CPU s", "CPU s per 100,000", "peak RSS MiB", "aim"),
            tuple(_row(count) for count in counts),
            ("without the CPU of the account; requests of blobs are HEAD and GET, which nothing needs",),
        )
    ]


class _Account(BaseHTTPRequestHandler):
    """Answers List Blobs of made-up blobs, and counts what it is asked."""

    protocol_version = "HTTP/1.1"
    blobs = 0
    asked: Counter[str]

    def do_GET(self) -> None:
        """One page."""
        query = parse_qs(urlsplit(self.path).query)
        if query.get("comp") != ["list"]:
            self.asked["blob"] += 1
            self.send_error(404)
            return
        self.asked["list"] += 1
        body = _page(int(query.get("marker", ["0"])[0]), self.blobs)
        self.send_response(200)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_HEAD(self) -> None:
        """Nothing asks for this."""
        self.asked["blob"] += 1
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        """Stay silent."""


def _page(first: int, blobs: int) -> bytes:
    until = min(first + _PAGE, blobs)
    entries = "".join(
        _BLOB.format(folder=index // 1000, index=index, size=4096 + index) for index in range(first, until)
    )
    marker = f"<NextMarker>{until}</NextMarker>" if until < blobs else "<NextMarker />"
    return (
        '<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="http://127.0.0.1/a" '
        f'ContainerName="c"><Prefix></Prefix><Blobs>{entries}</Blobs>{marker}</EnumerationResults>'
    ).encode()


def _row(blobs: int) -> tuple[str, ...]:
    asked = Counter[str]()
    account = type("_Counting", (_Account,), {"blobs": blobs, "asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), account) as server, tempfile.TemporaryDirectory() as folder:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cpu_s, peak_bytes = _list(f"http://127.0.0.1:{server.server_port}/a/c/", Path(folder, "data"), blobs)
        server.shutdown()
    return (
        f"{blobs:,}",
        str(asked["list"]),
        str(asked["blob"]),
        f"{cpu_s:.1f}",
        f"{cpu_s * 100_000 / blobs:.1f}",
        f"{peak_bytes / MIB:.0f}",
        at_most(peak_bytes / MIB, _AIM_MIB, " MiB"),
    )


def _list(source: str, dest: Path, blobs: int) -> tuple[float, int]:
    """CPU seconds and peak bytes of a process that lists; raises RunFailedError."""
    program = [
        sys.executable,
        "-m",
        "azcp_runtime",
        source,
        str(dest),
        "--stage",
        "list",
        "--auth",
        "anonymous",
    ]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
    said = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    if status or f"[list] {blobs} files" not in said:
        raise RunFailedError(f"{' '.join(program)} ended with {status}: {said}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
