"""Fixtures of all tests, and the guard that keeps what is required from being skipped in silence."""

from __future__ import annotations

import secrets
import shutil
import signal
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from azcp_kit.azurite import Azurite, find_azurite, run_azurite

from tests.lab.browser import find_browser
from tests.lab.requirements import KINDS, VARIABLE, missing, required_kinds

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path

collected: pytest.StashKey[Counter[str]] = pytest.StashKey()
passed: pytest.StashKey[Counter[str]] = pytest.StashKey()


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    """A running Azurite, one for all tests."""
    if find_azurite() is None:
        missing("azurite", "Azurite is not installed: put Node.js with npm on PATH, then `make clean venv`")
    with run_azurite(tmp_path_factory.mktemp("azurite")) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> str:
    """The program of a real browser."""
    if (found := find_browser()) is None:
        missing("browser", "Chromium is not installed: apt-get install chromium")
    return found


@pytest.fixture
def container() -> str:
    """The name of a container that no other test has."""
    return f"c{secrets.token_hex(8)}"


@pytest.fixture
def dest(tmp_path: Path) -> Iterator[Path]:
    """An empty destination that does not outlive the test, for the disk's sake."""
    folder = tmp_path / "dest"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def pytest_configure(config: pytest.Config) -> None:
    """Check the environment before the first test, not after the last."""
    required_kinds()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As a background job of a script the whole run has it ignored, and so would every program under test.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[collected] = Counter()
    config.stash[passed] = Counter()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Mark what uses a service by the fixture it asks for, and count it before -k and -m take it away."""
    for item in items:
        for kind in KINDS:
            if kind in getattr(item, "fixturenames", ()):
                item.add_marker(kind)
        config.stash[collected].update(_kinds(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn the skip of a required test into a failure, whoever called it."""
    report = yield
    required = _kinds(item) & required_kinds()
    if report.skipped and required and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{VARIABLE} requires {', '.join(sorted(required))}: {report.longreprtext}"
    if report.passed and report.when == "call":
        item.config.stash[passed].update(_kinds(item))
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run in which tests of a required kind exist and none of them passed."""
    if _unseen(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say why the guard failed the run."""
    for kind in _unseen(config):
        terminalreporter.write_line(f"{VARIABLE} requires {kind}, and no test that needs it passed", red=True)


def _kinds(item: pytest.Item) -> frozenset[str]:
    return frozenset(kind for kind in KINDS if item.get_closest_marker(kind))


def _unseen(config: pytest.Config) -> list[str]:
    if config.option.collectonly:
        return []
    counts = config.stash[collected], config.stash[passed]
    return sorted(kind for kind in required_kinds() if counts[0][kind] and not counts[1][kind])
