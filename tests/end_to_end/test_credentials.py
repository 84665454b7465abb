"""Signatures, keys and TLS: taken from where users put them, and shown nowhere."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from azcp_runtime.contract import ENV_ACCOUNT_KEY, ENV_SAS, ExitCode
from azure.storage.blob import ContainerSasPermissions, generate_container_sas

from tests.lab import faults
from tests.lab.dataset import plain_data_set
from tests.lab.expectations import expect_distributed
from tests.lab.fault_account import FaultAccount
from tests.lab.faults import FOREVER, Fault
from tests.lab.mpi import distribute, started
from tests.lab.stored_blobs import stored
from tests.lab.upload import blob_url, upload
from tests.lab.waiting import wait_until

if TYPE_CHECKING:
    from azcp_kit.azurite import Azurite

MIB: Final = 1 << 20
SAS: Final = "sv=2024-11-04&se=2099-01-01T00:00:00Z&sr=c&sp=rl&sig=SECRET"


def signature(azurite: Azurite, container: str) -> str:
    return generate_container_sas(
        azurite.account,
        container,
        account_key=azurite.key,
        permission=ContainerSasPermissions(read=True, list=True),
        expiry=dt.datetime.now(dt.UTC) + dt.timedelta(hours=1),
    )


@pytest.mark.parametrize("how", ["variable", "variable with question mark", "file", "url"])
def test_a_signature_is_taken_from_where_users_put_it(
    azurite: Azurite, container: str, dest: Path, tmp_path: Path, how: str
) -> None:
    data_set = plain_data_set(5, 70_000)
    upload(data_set, azurite, container, "p/")
    sas = signature(azurite, container)
    url, options, env = blob_url(azurite.endpoint, container, "p/"), [], {}
    if how == "url":
        url += f"?{sas}"
    elif how == "file":
        (tmp_path / "sas").write_text(f"{sas}\n")
        options = [f"--sas-file={tmp_path / 'sas'}"]
    else:
        env = {ENV_SAS: "?" * (how != "variable") + sas}
    outcome = distribute(url, dest, *options, ranks=2, nodes=2, env=env)
    expect_distributed(outcome, dest, data_set, nodes=2)
    assert "sig=" not in outcome.text.replace("sig=***", "")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (f"https://a.blob.core.windows.net/c?{SAS}", "AZCP_SAS is a URL; give only what follows the ?"),
        (f"a.blob.core.windows.net/c?{SAS}", "AZCP_SAS is a URL; give only what follows the ?"),
        (f'"{SAS}"', "AZCP_SAS has quotes around it; give the SAS without them"),
        (f"'?{SAS}'\n", "AZCP_SAS has quotes around it; give the SAS without them"),
    ],
)
def test_a_signature_with_more_around_it_is_refused_before_anything_is_asked(
    dest: Path, given: str, told: str
) -> None:
    with FaultAccount(stored(plain_data_set(10))) as account:
        outcome = distribute(account.url(), dest, env={ENV_SAS: given})
        assert account.exchanges() == []
    outcome.expect(ExitCode.USAGE)
    assert told in outcome.stderr
    assert "SECRET" not in outcome.text


def test_secrets_show_in_no_output_and_no_command_line(azurite: Azurite, container: str, dest: Path) -> None:
    data_set = plain_data_set(*[3 * MIB] * 8)
    upload(data_set, azurite, container, "")
    sas = signature(azurite, container)
    signed = sas.partition("sig=")[2].partition("&")[0]
    env = {ENV_SAS: sas, ENV_ACCOUNT_KEY: azurite.key}
    with started(blob_url(azurite.endpoint, container), dest, ranks=2, nodes=2, env=env) as job:
        wait_until(lambda: len(job.ranks()) == 2 or job.ended(), 30, "both ranks run")
        seen = job.command_lines()
        outcome = job.wait().expect(ExitCode.DONE)
    assert "azcp-distribute" in seen
    for secret in (signed, azurite.key):
        assert secret not in seen
        assert secret not in outcome.text


def test_the_secret_of_a_refused_signature_is_not_repeated(dest: Path) -> None:
    refused = Fault(faults.forbidden("AuthenticationFailed", "Signature did not match."), times=FOREVER)
    sas = "sv=2024-11-04&sr=c&sp=rl&sig=c2VjcmV0LXNpZ25hdHVyZQ%3D%3D"
    with FaultAccount(stored(plain_data_set(10)), [refused]) as account:
        outcome = distribute(f"{account.url()}?{sas}", dest).expect(ExitCode.DOWNLOAD)
    assert "c2VjcmV0LXNpZ25hdHVyZQ" not in outcome.text
    assert "AuthenticationFailed" in outcome.stderr


def test_an_account_behind_tls_is_read_over_tls(dest: Path) -> None:
    data_set = plain_data_set(0, 100, 5 * MIB + 3)
    with FaultAccount(stored(data_set), tls=True) as account:
        url = account.url()
        outcome = distribute(url, dest, "--auth=anonymous", ranks=2, nodes=2, env=account.trust)
    assert url.startswith("https:")
    expect_distributed(outcome, dest, data_set, nodes=2)


def test_a_certificate_that_nobody_vouches_for_is_refused(dest: Path) -> None:
    with FaultAccount(stored(plain_data_set(10)), tls=True) as account:
        outcome = distribute(account.url(), dest, "--auth=anonymous", "--max-retries=1", "--retry-time=2")
        assert account.exchanges() == []
    assert outcome.code == ExitCode.LIST
    assert "certificate" in outcome.stderr.lower()
