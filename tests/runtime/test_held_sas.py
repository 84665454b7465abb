"""A SAS that came out of a file: read again when it is refused, and only where that ends."""

from __future__ import annotations

import os
from pathlib import Path

from azcp_runtime.azure.holder import HeldSas


def test_the_file_is_read_again_when_the_sas_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "sas"
    file.write_text("?sig=new\n", encoding="ascii")
    held = HeldSas("sig=old", file)
    assert held.another("sig=older") == "sig=old"
    assert held.another("sig=old") == "sig=new" == held.current()


def test_a_pipe_that_nobody_writes_to_any_more_is_not_read_again(tmp_path: Path) -> None:
    pipe = tmp_path / "sas"
    os.mkfifo(pipe)
    assert HeldSas("sig=old", pipe).another("sig=old") == "sig=old"


def test_a_file_that_is_gone_leaves_the_sas_as_it_is(tmp_path: Path) -> None:
    assert HeldSas("sig=old", tmp_path / "gone").another("sig=old") == "sig=old"
