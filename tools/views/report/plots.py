"""Small pictures of a report's tables, as SVG, for notebooks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...driver.files import write_text
from ...driver.html_page import escaped
from .chip_runs import ChipRun, chip_runs
from .collect import Report

Numbers = NDArray[np.float64]

WIDTH, HEIGHT = 720, 168
LEFT, RIGHT, TOP, BOTTOM = 62, 10, 24, 20
"""The size of a picture and of its margins, in pixels."""

PLOT = WIDTH - LEFT - RIGHT
"""The width of the drawn area in pixels. It shows at most one value per pixel."""

COLOURS = {
    "reserved": "#9a948b",
    "always live": "#2f6b4f",
    "live now": "#3f7fb0",
    "gaps": "#c48a2c",
    "compute": "#3f7fb0",
    "exchange": "#c0568a",
    "sync": "#9a948b",
    "skipped iterations": "#c48a2c",
}
"""The colours of the page, which differ on white and on black."""


@dataclass(frozen=True)
class Plot:
    """A picture as SVG. A notebook shows it."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to an SVG file. Raises InputError."""
        write_text(Path(path), self.svg + "\n")


def memory_plot(report: Report) -> Plot:
    """The bytes of each tile by category, with a line at the bytes that a tile has.

    If tiles outnumber pixels, each pixel shows the fullest of its tiles.
    """
    table, program = report.tables["tiles"], report.program
    parts = {
        "always live": _column(table, "always_live"),
        "live now": _column(table, "live_now"),
        "gaps": _column(table, "gaps"),
    }
    used = _column(table, "variable_bytes") > 0
    reserved = np.where(used, float(program["reserved_bytes"]), 0.0)
    bands = {"reserved": reserved, **parts}
    total = np.sum(list(bands.values()), axis=0)
    chosen = _largest(total)
    limit = float(program["bytes_per_tile"])
    top = max(float(total.max(initial=0)), limit) * 1.04
    title = f"{program['name']}: bytes of every tile"
    return _plot(
        title,
        {name: values[chosen] for name, values in bands.items()},
        top,
        ("tile 0", f"tile {len(used) - 1:,}"),
        line=np.full(len(chosen), limit),
        line_name=f"{limit:,.0f} bytes of a tile",
    )


def timeline_plot(report: Report) -> Plot:
    """One run over time: the shares of compute, exchange and sync of all chips, and the live
    bytes."""
    program = report.program
    runs = chip_runs(report)
    cycles = float(max((each.end.max(initial=0) for each in runs), default=0))
    edges = np.linspace(0, cycles, PLOT + 1)
    bands = {name: np.zeros(PLOT) for name in PHASES}
    for each in runs:
        start, end, kinds = _segments(each)
        for k, name in enumerate(PHASES):
            busy = np.diff(np.interp(edges, *_busy(start, end, kinds == k)))
            bands[name] += busy / max(cycles / PLOT, 1e-9) / len(runs)
    shown = {name: values for name, values in bands.items() if values.any()}
    live = _live(report, edges)
    most = live.max(initial=0)
    return _plot(
        f"{program['name']}: one run",
        shown,
        1.08,
        ("cycle 0", f"{cycles:,.0f}"),
        line=live / max(float(most), 1.0),
        line_name=f"live bytes of the fullest tile (at most {most:,.0f})",
        unit="share",
    )


PHASES = ("compute", "exchange", "sync", "skipped iterations")
"""The stacked phases, the lowest first."""

ORDER = ("sync", "exchange", "compute", "skipped iterations")
"""The phases of an execution, in order of time."""


def _segments(run: ChipRun) -> tuple[Numbers, Numbers, NDArray[np.int64]]:
    """The pieces of a chip's run in order: their starts, their ends, and the numbers of their
    phases."""
    skipped = np.where(run.superstep < 0, run.end - run.start, 0)
    lengths = np.stack([run.sync, run.exchange, run.compute, skipped], axis=1).astype(np.float64)
    ends = run.start[:, None].astype(np.float64) + lengths.cumsum(axis=1)
    kinds = np.broadcast_to([PHASES.index(n) for n in ORDER], lengths.shape)
    return (ends - lengths).ravel(), ends.ravel(), kinds.ravel()


def _busy(start: Numbers, end: Numbers, here: NDArray[np.bool_]) -> tuple[Numbers, Numbers]:
    """Points in time, and the total length of the chosen segments up to each of them."""
    points = np.stack([start[here], end[here]], axis=1).ravel()
    lasted = np.repeat((end[here] - start[here]).cumsum(), 2)
    lasted[::2] -= end[here] - start[here]
    return np.append(0.0, points), np.append(0.0, lasted)


def _live(report: Report, edges: Numbers) -> Numbers:
    """The most live bytes in each pixel of time."""
    runs, steps = report.tables["executions"], report.tables["supersteps"]
    known = np.asarray(runs["superstep"]) >= 0
    start, step = _column(runs, "start")[known], np.asarray(runs["superstep"])[known]
    # Different chips run different supersteps at a time.
    order = np.argsort(start, kind="stable")
    start, step = start[order], step[order]
    found = np.zeros(PLOT)
    if not len(step):
        return found
    live = _column(steps, "live_bytes")[step]
    # A superstep lasts until the next one begins; a pixel may have several.
    running = live[np.clip(np.searchsorted(start, edges[:-1], "right") - 1, 0, None)]
    pixel = np.clip(np.searchsorted(edges, start, "right") - 1, 0, PLOT - 1)
    np.maximum.at(found, pixel, live)
    return np.maximum(found, running)


def _column(table: Mapping[str, Any], name: str) -> Numbers:
    return np.asarray(table[name], np.float64)


def _largest(total: Numbers) -> NDArray[np.int64]:
    """The index of the largest value in each column of pixels."""
    count = min(len(total), PLOT)
    edges = np.arange(count + 1) * len(total) // max(count, 1)
    return np.array([a + int(total[a:b].argmax()) for a, b in pairwise(edges)])


def _plot(
    title: str,
    bands: Mapping[str, Numbers],
    top: float,
    ends: tuple[str, str],
    line: Numbers,
    line_name: str,
    unit: str = "bytes",
) -> Plot:
    """A picture of bands on top of each other, and of a line.

    Args:
        top: the value at the upper edge.
    """
    high = HEIGHT - TOP - BOTTOM
    base = np.zeros(len(line))
    drawn: list[str] = []
    for name, values in bands.items():
        drawn.append(_area(base, base + values, top, high, COLOURS[name], name))
        base = base + values
    ticks = _ticks(top, high, unit)
    points = " ".join(_points(line, top, high))
    drawn.append(
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.2" '
        f'stroke-dasharray="4 3"><title>{escaped(line_name)}</title></polyline>'
    )
    legend = _legend([(name, COLOURS[name]) for name in bands], line_name)
    foot = HEIGHT - 6
    text = "".join([*ticks, *drawn, *legend])
    return Plot(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'role="img" style="max-width:100%;font:11px system-ui,sans-serif" fill="currentColor">'
        f"<title>{escaped(title)}</title>{text}"
        f'<text x="{LEFT}" y="{foot}">{escaped(ends[0])}</text>'
        f'<text x="{WIDTH - RIGHT}" y="{foot}" text-anchor="end">{escaped(ends[1])}</text></svg>'
    )


def _points(values: Numbers, top: float, high: int) -> list[str]:
    """The corners of a line with a step for each value."""
    x = LEFT + np.arange(len(values) + 1) * PLOT / max(len(values), 1)
    y = TOP + high * (1 - np.clip(values / top, 0, 1))
    pairs = np.stack([np.repeat(x, 2)[1:-1], np.repeat(y, 2)], axis=1) if len(values) else ()
    return [f"{a:.1f},{b:.1f}" for a, b in pairs]


def _area(low: Numbers, up: Numbers, top: float, high: int, colour: str, name: str) -> str:
    corners = " ".join([*_points(up, top, high), *reversed(_points(low, top, high))])
    return f'<polygon points="{corners}" fill="{colour}"><title>{escaped(name)}</title></polygon>'


def _ticks(top: float, high: int, unit: str) -> list[str]:
    """Lines across the picture at round values."""
    step = 0.5 if unit == "share" else _round_step(top)
    found: list[str] = []
    for value in np.arange(0, top, step):
        y = TOP + high * (1 - value / top)
        label = f"{value:.0%}" if unit == "share" else _short(value)
        found.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" '
            f'stroke="currentColor" opacity=".15"/>'
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
        )
    return found


def _round_step(top: float) -> float:
    """A step of 1, 2 or 5 times a power of ten, for three to five lines."""
    rough = max(top / 4, 1)
    power = 10 ** np.floor(np.log10(rough))
    return float(next(f * power for f in (1, 2, 5, 10) if f * power >= rough))


def _short(value: float) -> str:
    return f"{value / 1000:,g} kB" if value else "0"


def _legend(names: Sequence[tuple[str, str]], line_name: str) -> list[str]:
    found: list[str] = []
    x = LEFT
    for name, colour in names:
        found.append(
            f'<rect x="{x}" y="6" width="9" height="9" fill="{colour}"/>'
            f'<text x="{x + 13}" y="14">{escaped(name)}</text>'
        )
        x += 26 + 6 * len(name)
    found.append(
        f'<line x1="{x}" x2="{x + 16}" y1="10.5" y2="10.5" stroke="currentColor" '
        f'stroke-dasharray="4 3"/><text x="{x + 20}" y="14">{escaped(line_name)}</text>'
    )
    return found
