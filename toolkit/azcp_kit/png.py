"""Draws the timeline as PNG: the figures of the run, all nodes together, and the slowest of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from azcp_kit.canvas import Canvas, fitting, mixed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from azcp_kit.axes import Tick
    from azcp_kit.figures import Tile
    from azcp_kit.timeline import Band, Key, Row, Timeline

MOST_NODES: Final = 8
"""With more bands, a picture that fits a window or a slide can't be read."""

PAGE, CARD, INK, MUTED = "#f7f7f5", "#ffffff", "#1a1a19", "#63625e"
RULE, GRID, SLOW, SLOW_GROUND = "#dfded9", "#ecebe7", "#a3261f", "#fbe9e7"
COLOURS: Final = {"download": "#2a78d6", "broadcast": "#16936a", "write": "#d9581f"}

WIDTH: Final = 1200
MARGIN: Final = 32
PAD: Final = 20
PLOT_LEFT, PLOT_RIGHT = MARGIN + PAD + 104, WIDTH - MARGIN - PAD - 118
TILES_TOP, TILE_HEIGHT, TILE_GAP = 92, 82, 12
BANNER_HEIGHT: Final = 42
LEGEND_HEIGHT: Final = 80
AXIS_HEIGHT: Final = 30
HEADER_HEIGHT, ROW_HEIGHT, ROW_GAP, BAND_PAD = 30, 34, 6, 10
BAND_HEIGHT: Final = HEADER_HEIGHT + 3 * (ROW_HEIGHT + ROW_GAP) + BAND_PAD
FOOT_HEIGHT: Final = 80


def write_png(drawing: Timeline, path: Path) -> None:
    """Draw the timeline into the file.

    Raises:
        OSError: it cannot be written.
    """
    bands = [*([drawing.together] if drawing.together else []), *drawing.bands]
    banner = BANNER_HEIGHT if drawing.outcome else 0
    chart_top = TILES_TOP + banner + TILE_HEIGHT + LEGEND_HEIGHT
    chart_height = AXIS_HEIGHT + len(bands) * BAND_HEIGHT
    canvas = Canvas(WIDTH, chart_top + chart_height + FOOT_HEIGHT, PAGE)
    _head(canvas, drawing)
    _tiles(canvas, TILES_TOP + banner, drawing.tiles)
    _legend(canvas, chart_top - 16, drawing.keys, drawing.around)
    canvas.box(MARGIN, chart_top, WIDTH - MARGIN, chart_top + chart_height, CARD, RULE)
    _axis(canvas, chart_top + 20, drawing.ticks)
    for index, band in enumerate(bands):
        _band(canvas, chart_top + AXIS_HEIGHT + index * BAND_HEIGHT, band, drawing.ticks)
    _foot(canvas, chart_top + chart_height + 24, drawing)
    canvas.save(path)


def _head(canvas: Canvas, drawing: Timeline) -> None:
    canvas.text(MARGIN, 50, drawing.title, INK, size=22, bold=True)
    where = fitting(f"{drawing.source}  to  {drawing.dest}", 13, WIDTH - 2 * MARGIN)
    canvas.text(MARGIN, 74, where, MUTED, size=13)
    if drawing.outcome:
        top = TILES_TOP
        canvas.box(MARGIN, top, WIDTH - MARGIN, top + BANNER_HEIGHT - 12, SLOW_GROUND, SLOW)
        text = fitting(drawing.outcome, 13, WIDTH - 2 * MARGIN - 2 * PAD)
        canvas.text(MARGIN + 12, top + 20, text, SLOW, size=13)


def _tiles(canvas: Canvas, top: float, tiles: Sequence[Tile]) -> None:
    width = (WIDTH - 2 * MARGIN - TILE_GAP * (len(tiles) - 1)) / len(tiles)
    for index, tile in enumerate(tiles):
        left = MARGIN + index * (width + TILE_GAP)
        canvas.box(left, top, left + width, top + TILE_HEIGHT, CARD, RULE)
        canvas.text(left + 16, top + 24, tile.label, MUTED, size=13)
        canvas.text(left + 16, top + 51, tile.value, INK, size=23, bold=True)
        canvas.text(left + 16, top + 70, tile.note, MUTED, size=12)


def _legend(canvas: Canvas, baseline: float, keys: Sequence[Key], around: str) -> None:
    canvas.text(MARGIN, baseline - 22, "Rates of each node over time", INK, size=16, bold=True)
    canvas.text(WIDTH - MARGIN, baseline - 22, around, MUTED, size=12, side="right")
    left = float(MARGIN)
    for key in keys:
        canvas.area(_rectangle(left, baseline - 9, left + 10, baseline + 1), COLOURS[key.kind])
        left += 16 + canvas.text(left + 16, baseline, key.text, MUTED, size=12) + 22
    canvas.dashes(left, baseline - 10, baseline + 2, MUTED)
    canvas.text(left + 8, baseline, "last byte written", MUTED, size=12)


def _axis(canvas: Canvas, baseline: float, ticks: Sequence[Tick]) -> None:
    for tick in ticks:
        canvas.text(_x(float(tick.place) / 100), baseline, tick.label, MUTED, size=11, side="middle")


def _band(canvas: Canvas, top: float, band: Band, ticks: Sequence[Tick]) -> None:
    canvas.line((MARGIN, top), (WIDTH - MARGIN, top), RULE)
    left, baseline = MARGIN + PAD, top + 22
    left += round(canvas.text(left, baseline, band.name, INK, size=14, bold=True)) + 12
    host = fitting(band.host, 13, 520)
    left += round(canvas.text(left, baseline, host, MUTED, size=13)) + 12
    if band.slowest:
        canvas.box(left, baseline - 14, left + 62, baseline + 5, SLOW_GROUND, SLOW_GROUND)
        canvas.text(left + 31, baseline, "slowest", SLOW, size=12, side="middle", bold=True)
    canvas.text(WIDTH - MARGIN - PAD, baseline, band.done, MUTED, size=13, side="right")
    for index, row in enumerate(band.rows):
        row_top = top + HEADER_HEIGHT + index * (ROW_HEIGHT + ROW_GAP)
        _row(canvas, row_top, row, ticks)
        canvas.dashes(
            _x(float(band.finish) / 100), row_top, row_top + ROW_HEIGHT, SLOW if band.slowest else MUTED
        )


def _row(canvas: Canvas, top: float, row: Row, ticks: Sequence[Tick]) -> None:
    floor, colour = top + ROW_HEIGHT, COLOURS[row.kind]
    canvas.text(MARGIN + PAD, floor - 12, row.label, MUTED, size=13)
    canvas.text(PLOT_RIGHT + 12, floor - 12, row.peak, MUTED, size=12)
    for tick in ticks:
        x = _x(float(tick.place) / 100)
        canvas.line((x, top), (x, floor), GRID)
    canvas.line((PLOT_LEFT, top + ROW_HEIGHT / 2), (PLOT_RIGHT, top + ROW_HEIGHT / 2), GRID)
    if row.shares:
        points = _steps(row.shares, top, floor)
        canvas.area([(PLOT_LEFT, floor), *points, (PLOT_RIGHT, floor)], mixed(colour, CARD, 0.22))
        canvas.path([(PLOT_LEFT, floor), *points], colour)
    canvas.line((PLOT_LEFT, floor), (PLOT_RIGHT, floor), RULE)


def _foot(canvas: Canvas, baseline: float, drawing: Timeline) -> None:
    width = WIDTH - 2 * MARGIN
    lines = [drawing.hidden, totals_line(drawing), "  ·  ".join(drawing.facts)]
    for index, line in enumerate(line for line in lines if line):
        canvas.text(MARGIN, baseline + 18 * index, fitting(line, 12, width), MUTED, size=12)


def totals_line(drawing: Timeline) -> str:
    """The last line of the page's table."""
    cells = zip(drawing.head[2:], drawing.total[2:], strict=True)
    return f"Totals:  {'  ·  '.join(f'{head} {cell}' for head, cell in cells)}"


def _steps(shares: Sequence[float], top: float, floor: float) -> list[tuple[float, float]]:
    """A horizontal step for each share of the height."""
    heights = [floor - share * (floor - top) for share in shares]
    edges = [_x(index / len(shares)) for index in range(len(shares) + 1)]
    return [
        point
        for index, height in enumerate(heights)
        for point in ((edges[index], height), (edges[index + 1], height))
    ]


def _rectangle(left: float, top: float, right: float, bottom: float) -> list[tuple[float, float]]:
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


def _x(share: float) -> float:
    return PLOT_LEFT + share * (PLOT_RIGHT - PLOT_LEFT)
