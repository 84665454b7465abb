"""Secrets of every kind, planted, and looked for in all that a run leaves behind and shows meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from azcp_runtime.contract import (
    ENV_ACCOUNT_KEY,
    ENV_CONNECTION_STRING,
    ENV_PROGRESS,
    ENV_SAS,
    ExitCode,
)

from tests.lab import faults
from tests.lab.dataset import plain_data_set
from tests.lab.fault_account import ACCOUNT, FaultAccount
from tests.lab.faults import FOREVER, Fault
from tests.lab.mpi import started
from tests.lab.stored_blobs import stored
from tests.lab.waiting import wait_until

if TYPE_CHECKING:
    from tests.lab.mpi import Outcome

MIB: Final = 1 << 20
# Base64 of "planted secret", and as a SAS has it.
PLANTED: Final = "cGxhbnRlZCBzZWNyZXQhISE+Pz8vLy8vLw=="
IN_SAS: Final = "cGxhbnRlZCBzZWNyZXQhISE%2BPz8vLy8vLw%3D%3D"
STEM: Final = b"cGxhbnRlZCBzZWNyZXQhISE"
SAS: Final = f"sv=2024-11-04&sr=c&sp=rl&se=2099-01-01&sig={IN_SAS}"
CONNECTION: Final = f"DefaultEndpointsProtocol=https;AccountName={ACCOUNT};AccountKey={PLANTED}"


@dataclass(frozen=True)
class Way:
    """A variable, what it says, and whether that is in a file."""

    variable: str
    text: str
    in_file: bool

    def env(self, folder: Path) -> dict[str, str]:
        """The environment; the file is made."""
        if not self.in_file:
            return {self.variable: self.text}
        (folder / "secret").write_text(self.text + "\n")
        return {f"{self.variable}_FILE": str(folder / "secret")}


WAYS: Final = [
    Way(variable, text, in_file)
    for variable, text in (
        (ENV_SAS, SAS),
        (ENV_ACCOUNT_KEY, PLANTED),
        (ENV_CONNECTION_STRING, CONNECTION),
        (ENV_CONNECTION_STRING, f"AccountName={ACCOUNT};SharedAccessSignature={SAS}"),
    )
    for in_file in (False, True)
]


def all_that_ps_shows(what: str) -> bytes:
    """A file of every process of this machine, joined."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            found.append((process / what).read_bytes())
        except OSError:
            continue  # it has ended, or is the kernel's
    return b"\n".join(found)


def run(account: FaultAccount, dest: Path, tmp_path: Path, way: Way, *options: str) -> Outcome:
    """Two ranks with every output there is; the secret is looked for while they run."""
    (tmp_path / "out").mkdir()
    files = [f"--report={tmp_path}/out/report.json", f"--save-filelist={tmp_path}/out/list"]
    env = way.env(tmp_path) | {ENV_PROGRESS: "lines", "TMPDIR": str(tmp_path / "out")}
    with started(account.url(), dest, *files, *options, ranks=2, nodes=2, env=env) as job:
        wait_until(lambda: bool(account.exchanges()) or job.ended(), 60, "the account is asked")
        shown, environments = all_that_ps_shows("cmdline"), all_that_ps_shows("environ")
        outcome = job.wait()
    assert b"azcp-distribute" in shown
    assert STEM not in shown
    # A variable is its owner's to read, in /proc too; a file leaves no trace there.
    assert STEM in environments or way.in_file
    assert STEM not in environments or not way.in_file
    (tmp_path / "out" / "streams").write_text(outcome.text)
    return outcome


def found_in(*folders: Path) -> list[Path]:
    """Files that hold the secret, as grep -r would say."""
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if STEM in path.read_bytes()]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way.variable}{'_FILE' * way.in_file}")
def test_a_planted_secret_is_in_nothing_that_a_good_run_shows_or_leaves(
    dest: Path, tmp_path: Path, way: Way
) -> None:
    with FaultAccount(
        stored(plain_data_set(*[MIB] * 4)), [Fault(faults.slow(2 * MIB), times=FOREVER)]
    ) as account:
        run(account, dest, tmp_path, way).expect(ExitCode.DONE)
        assert any(
            STEM.decode() in exchange.request.target or "SharedKey" in str(exchange.request.headers)
            for exchange in account.reads()
        )
    assert (tmp_path / "out" / "report.json").exists()
    assert found_in(dest, tmp_path / "out") == []


@pytest.mark.parametrize("way", WAYS[:4], ids=lambda way: f"{way.variable}{'_FILE' * way.in_file}")
def test_a_planted_secret_that_the_account_repeats_in_its_refusal_is_not_shown(
    dest: Path, tmp_path: Path, way: Way
) -> None:
    echo = faults.error(403, "AuthenticationFailed", f"{SAS} {PLANTED}", detail=f"sig={IN_SAS} {PLANTED}")
    with FaultAccount(stored(plain_data_set(10)), [Fault(echo, times=FOREVER)]) as account:
        outcome = run(account, dest, tmp_path, way).expect(ExitCode.DOWNLOAD)
    assert "HTTP 403 AuthenticationFailed" in outcome.stderr
    assert found_in(dest, tmp_path / "out") == []


def test_a_sas_in_the_url_is_warned_of(dest: Path) -> None:
    with (
        FaultAccount(stored(plain_data_set(10))) as account,
        started(f"{account.url()}?{SAS}", dest, "--no-progress") as job,
    ):
        outcome = job.wait().expect(ExitCode.DONE)
    assert f"can read the SAS in the command line; use {ENV_SAS} or --sas-file" in outcome.stderr
    assert STEM.decode() not in outcome.text
