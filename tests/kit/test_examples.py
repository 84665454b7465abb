"""The generated examples are what the toolkit writes today."""

from __future__ import annotations

from pathlib import Path

from azcp_kit.examples import generate

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_every_example_is_what_make_examples_would_write() -> None:
    for path, text in generate(EXAMPLES).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run make examples"
