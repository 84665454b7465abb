"""Files that turned out wrong lose their records: the next run takes them for missing, wherever they lie."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from azcp_runtime.contract import WriteError
from azcp_runtime.disk.kept import journals
from azcp_runtime.disk.records import name_digest, read_records, write_records


def forget(dest: Path, names: Iterable[bytes]) -> None:
    """Drop what the journals of a node say of these files, in every version.

    Args:
        dest: this node's destination, locked, with no journal open.
        names: of the files.

    Raises:
        WriteError: a journal cannot be written, so that it still vouches for them.
    """
    wrong = {name_digest(name) for name in names}
    try:
        for path in journals(dest):
            kept, found = bytearray(), False
            for record in read_records(path):
                if record.name in wrong:
                    found = True
                else:
                    kept += record.encoded()
            if found:
                write_records(path, kept)
    except OSError as error:
        raise WriteError(
            f"cannot write to the journal in {dest} that files are wrong: {error.strerror}",
            remedy="check the disk, and run again with --compare none",
        ) from error
