"""Keys are found wherever they are mounted, with whatever mode, and copied to where ssh accepts them."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from azcp_runtime.contract import PreflightError
from azcp_runtime.ssh.keys import copy_keys, find_keys, make_host_key, parse_private

from tests.lab.ssh import make_keys


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_named_folder_is_taken(tmp_path: Path) -> None:
    keys = make_keys(tmp_path / "mount")
    assert find_keys({"AZCP_SSH_KEYS": str(keys)}, None).folder == keys
    assert find_keys({}, None, str(keys)).folder == keys


def test_a_home_folder_is_looked_into(tmp_path: Path) -> None:
    make_keys(tmp_path / ".ssh")
    assert find_keys({"HOME": str(tmp_path)}, None).folder == tmp_path / ".ssh"


def test_our_own_copies_are_found_where_no_mount_is_named(tmp_path: Path) -> None:
    copied = copy_keys(find_keys({}, None, str(make_keys(tmp_path / "mount"))), tmp_path)
    assert find_keys({}, tmp_path) == copied


def test_the_pairs_of_a_folder_may_be_several(tmp_path: Path) -> None:
    chosen, other = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    (tmp_path / "id_ed25519").write_bytes(chosen.export_private_key())
    (tmp_path / "id_rsa").write_bytes(other.export_private_key())
    (tmp_path / "id_rsa.pub").write_bytes(other.export_public_key())
    found = find_keys({}, None, str(tmp_path)).authorized.splitlines()
    assert found == [key.export_public_key().strip() for key in (other, chosen)]


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to(path)])
def test_what_is_no_file_is_no_key(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "id_ed25519")
    with pytest.raises(PreflightError, match="there is no ssh key in"):
        find_keys({}, None, str(tmp_path))


def test_copies_are_for_our_eyes_only(tmp_path: Path) -> None:
    keys = copy_keys(find_keys({}, None, str(make_keys(tmp_path / "mount"))), tmp_path)
    make_host_key(keys)
    assert mode(keys.folder) == 0o700
    assert {mode(path) for path in keys.folder.iterdir()} == {0o600}


@pytest.mark.parametrize("name", ["ssh-privatekey", "id_rsa", "id_ed25519"])
def test_the_public_key_is_made_from_the_private_one_where_it_is_missing(tmp_path: Path, name: str) -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")
    (tmp_path / name).write_bytes(key.export_private_key())
    assert find_keys({}, None, str(tmp_path)).authorized == key.export_public_key()


def test_a_key_with_a_carriage_return_and_no_last_line_end_is_read(tmp_path: Path) -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")
    text = key.export_private_key().replace(b"\n", b"\r\n").rstrip()
    (tmp_path / "id_ed25519").write_bytes(text)
    assert parse_private(find_keys({}, None, str(tmp_path))) == key


def test_a_restart_with_other_keys_leaves_none_of_the_old(tmp_path: Path) -> None:
    copy_keys(find_keys({}, None, str(make_keys(tmp_path / "old"))), tmp_path)
    public_only = make_keys(tmp_path / "other")
    (public_only / "ssh-privatekey").unlink()
    copy_keys(find_keys({}, None, str(public_only)), tmp_path)
    assert find_keys({}, tmp_path).private == b""


def test_the_jobs_key_signs_the_host_key(tmp_path: Path) -> None:
    keys = copy_keys(find_keys({}, None, str(make_keys(tmp_path / "mount"))), tmp_path)
    host_key, certificate = make_host_key(keys)
    assert certificate
    signed: Any = asyncssh.read_certificate(certificate)
    assert signed.signing_key == parse_private(keys).convert_to_public()
    assert signed.key == asyncssh.read_public_key(f"{host_key}.pub")


def test_without_the_private_key_nothing_is_signed(tmp_path: Path) -> None:
    mounted = make_keys(tmp_path / "mount")
    (mounted / "ssh-privatekey").unlink()
    assert make_host_key(copy_keys(find_keys({}, None, str(mounted)), tmp_path))[1] is None


def test_each_start_has_a_host_key_of_its_own(tmp_path: Path) -> None:
    keys = copy_keys(find_keys({}, None, str(make_keys(tmp_path / "mount"))), tmp_path)
    first = make_host_key(keys)[0].read_bytes()
    assert make_host_key(keys)[0].read_bytes() != first


def test_no_key_at_all_is_told_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(PreflightError, match="no ssh key in .*AZCP_SSH_KEYS"):
        find_keys({}, None, str(tmp_path))


def test_a_key_with_a_passphrase_is_refused(tmp_path: Path) -> None:
    key = asyncssh.generate_private_key("ssh-rsa")
    (tmp_path / "id_rsa").write_bytes(key.export_private_key("pkcs8-pem", passphrase="x"))  # noqa: S106
    with pytest.raises(PreflightError, match="without a passphrase"):
        find_keys({}, None, str(tmp_path))


def test_a_file_that_is_no_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "id_rsa").write_text("hello", encoding="ascii")
    with pytest.raises(PreflightError, match="cannot be used"):
        find_keys({}, None, str(tmp_path))
