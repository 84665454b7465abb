"""A sheet to draw on, in points of two pixels each; the one module that imports Pillow."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from PIL import Image, ImageDraw, ImageFont

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PIXELS: Final = 2
"""Per point, as screens of today have them; text of 12 points stays sharp when it is looked at closely."""

Colour: TypeAlias = str
"""As #rrggbb."""

Side: TypeAlias = Literal["left", "middle", "right"]

_ANCHOR: Final = {"left": "ls", "middle": "ms", "right": "rs"}


class Canvas:
    """A sheet of so many points, filled with a colour; y grows downwards.

    Args:
        width: in points.
        height: in points.
        ground: its colour.
    """

    def __init__(self, width: int, height: int, ground: Colour) -> None:
        self._image = Image.new("RGB", (width * PIXELS, height * PIXELS), ground)
        self._draw = ImageDraw.Draw(self._image)

    def box(self, left: float, top: float, right: float, bottom: float, fill: Colour, edge: Colour) -> None:
        """A rectangle with round corners."""
        place = [round(value * PIXELS) for value in (left, top, right, bottom)]
        self._draw.rounded_rectangle(place, radius=8 * PIXELS, fill=fill, outline=edge, width=PIXELS // 2)

    def line(self, start: tuple[float, float], end: tuple[float, float], colour: Colour) -> None:
        """A hair line."""
        self._draw.line([_pixels(start), _pixels(end)], fill=colour, width=1)

    def dashes(self, x: float, top: float, bottom: float, colour: Colour) -> None:
        """An upright dashed line."""
        for y in range(round(top), round(bottom), 6):
            self._draw.line([_pixels((x, y)), _pixels((x, min(y + 3, bottom)))], fill=colour, width=PIXELS)

    def area(self, points: Sequence[tuple[float, float]], colour: Colour) -> None:
        """A polygon."""
        self._draw.polygon([_pixels(point) for point in points], fill=colour)

    def path(self, points: Sequence[tuple[float, float]], colour: Colour) -> None:
        """A line through points."""
        pixels = [_pixels(point) for point in points]
        self._draw.line(pixels, fill=colour, width=round(1.5 * PIXELS), joint="curve")

    def text(
        self,
        x: float,
        baseline: float,
        text: str,
        colour: Colour,
        *,
        size: int = 12,
        side: Side = "left",
        bold: bool = False,
    ) -> float:
        """A line of text whose `side` is at `x`; its width."""
        font = _font(size)
        # The font has one weight: a stroke of less than a point makes it a heavier one.
        stroke = 0.022 * size * PIXELS if bold else 0
        self._draw.text(
            _pixels((x, baseline)), text, fill=colour, font=font, anchor=_ANCHOR[side], stroke_width=stroke
        )
        return font.getlength(text) / PIXELS

    def save(self, path: Path) -> None:
        """Write the sheet as PNG.

        Raises:
            OSError: the file cannot be written.
        """
        self._image.save(path, "PNG", optimize=True, dpi=(72 * PIXELS, 72 * PIXELS))


def fitting(text: str, size: int, width: float) -> str:
    """The text, its middle left out where it is wider than so many points."""
    if _font(size).getlength(text) <= width * PIXELS:
        return text
    keep = len(text) - 1
    while keep > 2 and _font(size).getlength(_without_middle(text, keep)) > width * PIXELS:  # noqa: PLR2004
        keep -= max(1, keep // 20)
    return _without_middle(text, keep)


def mixed(colour: Colour, ground: Colour, share: float) -> Colour:
    """A colour laid thinly on another."""
    over, under = (tuple(int(each[at : at + 2], 16) for at in (1, 3, 5)) for each in (colour, ground))
    parts = (round(a * share + b * (1 - share)) for a, b in zip(over, under, strict=True))
    return "#" + "".join(f"{part:02x}" for part in parts)


def _without_middle(text: str, keep: int) -> str:
    return f"{text[: (keep + 1) // 2]}...{text[len(text) - keep // 2 :]}"


def _pixels(point: tuple[float, float]) -> tuple[int, int]:
    return round(point[0] * PIXELS), round(point[1] * PIXELS)


@cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size * PIXELS)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise TypeError("this build of Pillow has no FreeType")
    return font
