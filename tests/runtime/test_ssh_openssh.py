"""The base's own sshd runs under a configuration that needs nothing of the base but itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from azcp_runtime.contract import UsageError
from azcp_runtime.ssh.daemon import ssh_kind
from azcp_runtime.ssh.keys import JobKeys
from azcp_runtime.ssh.openssh import sshd_config

FOLDER = Path("/run/azcp/keys")
KEYS = JobKeys(FOLDER, b"private", b"public", b"")


def test_the_configuration_names_our_files_and_closes_every_other_door() -> None:
    lines = sshd_config(KEYS, FOLDER / "host_key", FOLDER / "host_key-cert.pub", "", 2222).splitlines()
    assert "AuthorizedKeysFile /run/azcp/keys/authorized_keys" in lines
    assert "HostCertificate /run/azcp/keys/host_key-cert.pub" in lines
    assert "SetEnv AZCP_STATE_DIR=/run/azcp" in lines
    for closed in ("UsePAM no", "PasswordAuthentication no", "DisableForwarding yes", "StrictModes no"):
        assert closed in lines


def test_an_address_and_a_host_key_without_a_certificate_are_as_good() -> None:
    text = sshd_config(KEYS, FOLDER / "host_key", None, "10.0.0.1", 2300)
    assert "ListenAddress 10.0.0.1\n" in text
    assert "Port 2300\n" in text
    assert "HostCertificate" not in text


def test_the_image_says_which_server_it_has(tmp_path: Path) -> None:
    settings = tmp_path / "image.toml"
    assert ssh_kind(settings) == "bundled"
    settings.write_text('ssh = "base"\n', encoding="utf-8")
    assert ssh_kind(settings) == "base"
    settings.write_text("ssh = \n", encoding="utf-8")
    with pytest.raises(UsageError, match="damaged"):
        ssh_kind(settings)
