"""Whoever reads that a node is lost reads its name."""

from __future__ import annotations

from pathlib import Path

from azcp_runtime.ssh.names import remember_names, with_names


def test_an_address_is_told_with_the_name_of_its_node(tmp_path: Path) -> None:
    remember_names(tmp_path, {"llama-worker-1": "10.0.0.7", "llama-worker-11": "10.0.0.77", "n3": "fd00::3"})
    assert with_names(tmp_path, "10.0.0.7: the connection is lost") == (
        "llama-worker-1 (10.0.0.7): the connection is lost"
    )
    assert (
        with_names(tmp_path, "fd00::3: refused, 10.0.0.77.")
        == "n3 (fd00::3): refused, llama-worker-11 (10.0.0.77)."
    )
    assert with_names(tmp_path, "10.0.0.70: 10.0.0.7x") == "10.0.0.70: 10.0.0.7x"


def test_without_names_a_text_stays_as_it_is(tmp_path: Path) -> None:
    assert with_names(tmp_path, "10.0.0.7: lost") == "10.0.0.7: lost"
