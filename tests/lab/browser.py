"""A real browser without a window: what it says of a page, and what the page looks like."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from PIL import Image

if TYPE_CHECKING:
    from pathlib import Path

DEADLINE_S: Final = 120.0
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS: Final = (
    "--headless",
    # Its own sandbox needs what a container and root deny; the pages are the tests' own.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--enable-logging=stderr",
    "--log-level=0",
)
_DARK: Final = "--blink-settings=preferredColorScheme=0"
_LIGHT: Final = "--blink-settings=preferredColorScheme=1"


@dataclass(frozen=True)
class Shown:
    """A page as the browser shows it.

    Attributes:
        dom: the document after it was loaded.
        console: lines of the console, errors and refused loads among them.
        picture: of the window.
    """

    dom: str
    console: tuple[str, ...]
    picture: Image.Image


def find_browser() -> str | None:
    """The browser's program, None where there is none."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


def show(page: Path, scratch: Path, *, dark: bool = False, width: int = 1240, height: int = 1600) -> Shown:
    """Open a page in a window of this size.

    Raises:
        subprocess.CalledProcessError: the browser failed.
        subprocess.TimeoutExpired: it did not end.
    """
    browser = find_browser()
    assert browser is not None
    shot = scratch / "shot.png"
    theme = _DARK if dark else _LIGHT
    options = [*_OPTIONS, theme, f"--user-data-dir={scratch / 'profile'}", f"--window-size={width},{height}"]
    done = subprocess.run(
        [browser, *options, f"--screenshot={shot}", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE_S,
    )
    console = tuple(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    with Image.open(shot) as picture:
        return Shown(done.stdout, console, picture.convert("RGB"))
