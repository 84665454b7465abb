"""How many ranks azcp-launch starts on each node."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from azcp_runtime.contract import PreflightError
from azcp_runtime.launch import rails as launch_rails
from azcp_runtime.launch.discovery.find import ALONE
from azcp_runtime.launch.job import Job, job_of
from azcp_runtime.launch.options import parse_launch
from azcp_runtime.launch.peers import Nobody
from azcp_runtime.launch.phases import Nodes, distribute_arguments, survey_arguments
from azcp_runtime.launch.rails import find_rails, with_rails
from azcp_runtime.ssh.state import Surroundings

NODES = Nodes({"a": "10.0.0.1", "b": "10.0.0.2"}, Path("/run/azcp/hostfile"))


def job(state: Path, *options: str, env: dict[str, str] | None = None) -> Job:
    return job_of(parse_launch(["/s", "/d", *options], {}), ALONE, Surroundings({}, "/"), env or {}, state)


class FakeMpirun:
    """Writes what ranks would write, and remembers what it was asked for."""

    def __init__(self, text: str, code: int = 0) -> None:
        self.arguments: list[str] = []
        self._text = text
        self._code = code

    def __call__(
        self, arguments: Sequence[str], _env: object, _lost: object, *, reads_stdin: bool, output: int
    ) -> int:
        """Run it."""
        assert not reads_stdin
        self.arguments = list(arguments)
        with open(output, "w", closefd=False) as file:
            file.write(self._text)
        return self._code


def test_a_number_needs_nobodys_answer(tmp_path: Path) -> None:
    assert find_rails(job(tmp_path), NODES, Nobody()) is None
    assert find_rails(job(tmp_path, "--rails", "4"), NODES, Nobody()) == 4


def test_named_devices_are_counted(tmp_path: Path) -> None:
    named = ("--rails", "auto", "--rail-devices", "eth1,eth2")
    assert find_rails(job(tmp_path, *named), NODES, Nobody()) == 2
    env = {"AZCP_RAIL_DEVICES": "a,b,c"}
    assert find_rails(job(tmp_path, "--rails=auto", env=env), NODES, Nobody()) == 3


def test_auto_asks_every_node_and_takes_the_least(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mpirun = FakeMpirun(
        'azcp-rails {"host": "a", "rails": 8, "why": "8 HCAs"}\n'
        'azcp-rails {"host": "b", "rails": 2, "why": "2 HCAs"}\n'
    )
    monkeypatch.setattr(launch_rails, "run_mpirun", mpirun)
    assert find_rails(job(tmp_path, "--rails", "auto"), NODES, Nobody()) == 2
    assert mpirun.arguments == survey_arguments(NODES)
    assert "2 rails per node, as b (2 HCAs) can have" in capsys.readouterr().err


def test_a_survey_that_fails_ends_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_rails, "run_mpirun", FakeMpirun("", 213))
    with pytest.raises(PreflightError, match="mpirun ended with 213"):
        find_rails(job(tmp_path, "--rails", "auto"), NODES, Nobody())


def test_ranks_are_started_node_by_node() -> None:
    words = distribute_arguments(NODES, ["/s", "/d"], {}, rails=4)
    assert words[1:3] == ["-np", "8"]
    assert words[5:7] == ["--map-by", "ppr:4:node"]
    assert survey_arguments(NODES)[-3:] == ["--map-by", "ppr:1:node", "/opt/azcp/bin/azcp-rails"]


@pytest.mark.parametrize("said", [["--rails", "auto"], ["--rails=auto"], []])
def test_every_rank_is_told_the_number(said: list[str]) -> None:
    assert with_rails(["/s", *said, "/d"], 4) == ["/s", "/d", "--rails", "4"]
    assert with_rails(["/s", *said, "/d"], None) == ["/s", "/d"]
