"""What the toolkit knows of azcp-distribute's options is what the command takes."""

from __future__ import annotations

import pytest
from azcp_runtime.contract import UsageError
from azcp_runtime.contract.options import DISTRIBUTE_OPTIONS
from azcp_runtime.options import parse_options

FLAGS = sorted(name for name, takes_value in DISTRIBUTE_OPTIONS.items() if not takes_value)


@pytest.mark.parametrize("name", sorted(DISTRIBUTE_OPTIONS))
def test_each_option_is_known_to_the_command(name: str) -> None:
    if name in {"--help", "--version"}:
        with pytest.raises(SystemExit):
            parse_options([name])
        return
    with pytest.raises(UsageError, match="are required: SOURCE|expected one argument|required: DEST"):
        parse_options([name])


@pytest.mark.parametrize("name", sorted(set(DISTRIBUTE_OPTIONS) - set(FLAGS)))
def test_an_option_with_a_value_asks_for_it(name: str) -> None:
    with pytest.raises(UsageError, match="expected one argument"):
        parse_options(["/source", "/dest", name])


def test_no_option_of_the_command_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_options(["--help"])
    told = {word.strip(",[]") for word in capsys.readouterr().out.split() if word.startswith(("--", "[--"))}
    assert told <= set(DISTRIBUTE_OPTIONS)
