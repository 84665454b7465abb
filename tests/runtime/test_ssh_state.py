"""The one writable folder is ours alone, and what is remembered there comes back as it was."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from azcp_runtime.contract import PreflightError
from azcp_runtime.ssh.state import CONTAINER, LAUNCHER, Surroundings, recall, remember, state_dir


def test_the_named_folder_is_made_for_us_alone(tmp_path: Path) -> None:
    folder = state_dir({"AZCP_STATE_DIR": str(tmp_path / "state")})
    assert folder == tmp_path / "state"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_that_others_may_enter_keeps_its_mode_and_gets_one_of_our_own(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    state = state_dir({"AZCP_STATE_DIR": str(tmp_path)})
    assert state.parent == tmp_path
    assert [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path, state)] == [0o777, 0o700]


def test_a_damaged_memory_is_told(tmp_path: Path) -> None:
    (tmp_path / "container.json").touch()
    with pytest.raises(PreflightError, match=r"container.json is damaged"):
        recall(tmp_path, "container.json")


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    assert state_dir({"AZCP_STATE_DIR": str(tmp_path / "link")}) != tmp_path / "link"


def test_no_folder_is_told_with_each_reason_and_what_to_do() -> None:
    with pytest.raises(PreflightError, match=r"/proc/none: No such file.*AZCP_STATE_DIR"):
        state_dir({"AZCP_STATE_DIR": "/proc/none"})


def test_an_environment_comes_back_byte_for_byte(tmp_path: Path) -> None:
    found = Surroundings({"A": "two\nlines = '\"", "B": os.fsdecode(b"\xff\xfe"), "C": ""}, "/work dir", 2300)
    remember(tmp_path, CONTAINER, found)
    assert recall(tmp_path, CONTAINER) == found
    assert stat.S_IMODE((tmp_path / CONTAINER).stat().st_mode) == 0o600


def test_the_container_is_asked_before_the_launcher(tmp_path: Path) -> None:
    assert recall(tmp_path, CONTAINER, LAUNCHER) is None
    remember(tmp_path, LAUNCHER, Surroundings({"A": "launcher"}, "/"))
    assert recall(tmp_path, CONTAINER, LAUNCHER) == Surroundings({"A": "launcher"}, "/")
    remember(tmp_path, CONTAINER, Surroundings({"A": "container"}, "/"))
    assert recall(tmp_path, CONTAINER, LAUNCHER) == Surroundings({"A": "container"}, "/")


def test_what_python_adds_to_its_own_environment_is_not_remembered() -> None:
    program = (
        "import os; from azcp_runtime.ssh.state import here; print(sorted(os.environ), sorted(here().env))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={"A": "1"}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['A', 'LC_CTYPE'] ['A']"
