"""The six lines on standard output that scripts parse, and the two that come where they apply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from azcp_runtime.contract.units import format_rate
from azcp_runtime.verify import Verified


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes moved in so many seconds."""

    bytes: int
    seconds: float


def list_line(files: int, size_bytes: int, seconds: float) -> str:
    """What the source holds."""
    return f"[list] {files} files, {size_bytes} bytes T={seconds:.2f}s"


def diff_line(peer: int, azure: int, skipped: int, seconds: float) -> str:
    """What moves: sent by a node that holds it, or read from the source."""
    return (
        f"[diff] {peer + azure} to transfer ({peer} peer, {azure} azure), {skipped} skipped T={seconds:.2f}s"
    )


def download_line(span: Span) -> str:
    """Reads from the source, summed over ranks."""
    return f"[download] {span.bytes} bytes T={span.seconds:.2f}s BW={format_rate(span.bytes, span.seconds)}"


def bcast_line(shards: int, span: Span) -> str:
    """Broadcasts, per receiver."""
    return (
        f"[bcast] {shards} shards {span.bytes} bytes T={span.seconds:.2f}s "
        f"BW={format_rate(span.bytes, span.seconds)}"
    )


def verify_line(found: Verified, seconds: float) -> str:
    """Digests across nodes, and against the Content-MD5 where the blob has one."""
    return (
        f"[verify] {found.files} files digested, {len(found.wrong)} wrong; Content-MD5: {found.match} match, "
        f"{found.mismatch} mismatch, {found.absent} absent T={seconds:.2f}s"
    )


def filelist_line(entries: int | None, seconds: float) -> str:
    """Whether a list of the run was written."""
    what = "skipped (no --save-filelist)" if entries is None else f"wrote {entries} entries"
    return f"[filelist] {what} T={seconds:.2f}s"


def retries_line(counts: Mapping[str, int], downloaders: int) -> str:
    """Retries by class over the cluster; empty where there were none."""
    parts = " ".join(f"{name}x{count}" for name, count in counts.items() if count)
    return f"[cluster] retries: {parts} across {downloaders} downloaders" if parts else ""


def total_line(seconds: float) -> str:
    """The whole run."""
    return f"[total] T={seconds:.2f}s"
