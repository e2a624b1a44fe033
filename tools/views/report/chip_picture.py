"""A picture of a run on several chips, as SVG: a row for each chip, and time to the right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ....ir.well_known import ENTRY
from ...driver.html_page import escaped
from .chip_boxes import SKIPPED, Boxes, chip_boxes
from .collect import Report
from .plots import Plot

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 960, 58, 12, 44, 24
"""The size of a picture and of its margins, in pixels."""

ROW, LEAST_ROW, MOST_HIGH = 30, 5, 720
"""The height of a row, the least height, and the most height of all rows, in pixels."""

LEAST = 0.4
"""The least width of a box, in pixels. Of boxes of a chip in the same part of a pixel, the longest
is drawn."""

NAMED = 10
"""Parts that the legend names: those that take longest."""

GREY = "#9a948b"

HUE = 137.508
"""The golden angle: neighbouring parts have hues that differ."""


def chip_picture(report: Report) -> Plot:
    """The picture of a run: what each chip does when, what it skips, and when chips meet."""
    boxes, chips = chip_boxes(report), len(report.tables["chips"]["chip"])
    cycles = max(int(boxes.end.max(initial=0)), 1)
    row = max(min(ROW, MOST_HIGH // chips), LEAST_ROW)
    high = TOP + row * chips + BOTTOM
    drawn = [*_legend(boxes), *_rows(chips, row), *_boxes(boxes, cycles, row)]
    drawn += _meetings(boxes, cycles, row)
    clock = report.program["target"]["clock_hz"]
    title = f"{report.program['name']}: {cycles:,} cycles ({1e6 * cycles / clock:,.4g} us) of a run"
    if boxes.left_out:
        title += f"; {boxes.left_out:,} later boxes are not drawn"
    return Plot(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {high}" width="{WIDTH}" '
        f'role="img" style="max-width:100%;font:11px system-ui,sans-serif" fill="currentColor">'
        f"<title>{escaped(title)}</title>"
        f'<defs><pattern id="skipped" width="6" height="6" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate(45)"><rect width="2.4" height="6" fill="{GREY}"/></pattern>'
        f'</defs><text x="{LEFT}" y="14">{escaped(title)}</text>{"".join(drawn)}'
        f'<text x="{LEFT}" y="{high - 7}">cycle 0</text>'
        f'<text x="{WIDTH - RIGHT}" y="{high - 7}" text-anchor="end">{cycles:,}</text></svg>'
    )


def colour_of(part: int, parts: Sequence[str]) -> str:
    """The colour of a part; grey for the entry, and grey lines for what is skipped."""
    if part == SKIPPED:
        return "url(#skipped)"
    if parts[part] == ENTRY:
        return GREY
    return f"hsl({(part * HUE + 205) % 360:.0f} 48% 52%)"


def _legend(boxes: Boxes) -> Iterator[str]:
    lasts = np.zeros(len(boxes.parts), np.int64)
    known = boxes.part >= 0
    np.add.at(lasts, boxes.part[known], (boxes.end - boxes.start)[known])
    longest = np.sort(np.argsort(-lasts, kind="stable")[:NAMED])
    names = [(k, boxes.parts[k]) for k in map(int, longest)]
    more = len(boxes.parts) - len(names)
    entries = [(colour_of(k, boxes.parts), _cut(name)) for k, name in names]
    if more > 0:
        entries.append(("none", f"and {more:,} more"))
    if (boxes.part == SKIPPED).any():
        entries.append((colour_of(SKIPPED, boxes.parts), "skipped"))
    x = float(LEFT)
    for colour, name in entries:
        if x + 26 + 6 * len(name) > WIDTH:
            return
        yield (
            f'<rect x="{x:.0f}" y="24" width="9" height="9" fill="{colour}"/>'
            f'<text x="{x + 13:.0f}" y="32">{escaped(name)}</text>'
        )
        x += 26 + 6 * len(name)


def _cut(name: str) -> str:
    return name if len(name) <= 24 else "…" + name[-23:]


def _rows(chips: int, row: int) -> Iterator[str]:
    """The grounds of the rows, on which a chip waits, and the numbers of chips."""
    gap = 3 if row > 10 else 1
    every = max(-(-12 // row), 1)
    for chip in range(chips):
        y = TOP + chip * row
        yield (
            f'<rect x="{LEFT}" y="{y}" width="{WIDTH - LEFT - RIGHT}" height="{row - gap}" '
            f'opacity=".08"/>'
        )
        if chip % every == 0:
            yield (
                f'<text x="{LEFT - 8}" y="{y + (row - gap) / 2 + 4:.0f}" text-anchor="end">'
                f"chip {chip}</text>"
            )


def _boxes(boxes: Boxes, cycles: int, row: int) -> Iterator[str]:
    scale = (WIDTH - LEFT - RIGHT) / cycles
    gap = 3 if row > 10 else 1
    x, wide = LEFT + boxes.start * scale, (boxes.end - boxes.start) * scale
    # Of the boxes in the same place, the longest is drawn.
    place = boxes.chip * (WIDTH * 4) + (x / LEAST).astype(np.int64)
    order = np.lexsort((-wide, place))
    _, first = np.unique(place[order], return_index=True)
    for k in np.sort(order[first]).tolist():
        part, turn = int(boxes.part[k]), int(boxes.turn[k])
        y = TOP + int(boxes.chip[k]) * row
        if part == SKIPPED:
            what, label = f"skipped: {turn:,} more", f"{turn:,} more"
        else:
            what, label = f"{boxes.parts[part]}, time {turn + 1:,}", f"{turn + 1:,}"
        tip = f"{what}: cycles {int(boxes.start[k]):,} to {int(boxes.end[k]):,}"
        yield (
            f'<rect x="{x[k]:.2f}" y="{y}" width="{max(wide[k], LEAST):.2f}" '
            f'height="{row - gap}" fill="{colour_of(part, boxes.parts)}">'
            f"<title>{escaped(tip)}</title></rect>"
        )
        named = part == SKIPPED or boxes.parts[part] != ENTRY
        if named and wide[k] > 4 + 6 * len(label) and row >= 14:
            fill = "currentColor" if part == SKIPPED else "#fff"
            yield (
                f'<text x="{x[k] + wide[k] / 2:.1f}" y="{y + (row - gap) / 2 + 4:.0f}" '
                f'text-anchor="middle" fill="{fill}" pointer-events="none">{label}</text>'
            )


def _meetings(boxes: Boxes, cycles: int, row: int) -> Iterator[str]:
    """A line where chips meet, from the first of them to the last."""
    scale = (WIDTH - LEFT - RIGHT) / cycles
    gap = 3 if row > 10 else 1
    rows = zip(boxes.meet.tolist(), boxes.first.tolist(), boxes.last.tolist(), strict=True)
    for at, first, last in rows:
        x = LEFT + at * scale
        yield (
            f'<line x1="{x:.2f}" x2="{x:.2f}" y1="{TOP + first * row}" '
            f'y2="{TOP + last * row + row - gap}" stroke="currentColor" stroke-width=".6" '
            f'opacity=".7"/>'
        )
