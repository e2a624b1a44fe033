"""Draws the example as an SVG: one panel for each level, from the whole tensor to bytes.

A colour stands for a tile. An element has the colour of the tile that held it first, at every
level, so that what has moved is seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...driver.html_page import escaped
from .example import PADDING, Example, HeldVariable

WIDTH, MARGIN = 1120, 44
"""The width of the picture, and the space left and right of its contents, in pixels."""

CELL = 8
"""The width of an element of an image, in pixels."""

IMAGE, WEIGHTS = "arg0", "arg1"
"""The variables of the inputs."""

WINDOW, FILTERS, RESULT = "conv+relu/in0", "conv+relu/in1", "conv+relu"
"""The variables that the vertices read and write."""

STYLE = """
svg { --card: #ffffff; --panel: #f6f8f8; --ink: #17292b; --soft: #5d7275; --line: #c9d5d6;
  --code: #ecf1f1; --t0: #0f9b8e; --t1: #e39a1b; --t2: #d8586a; --t3: #6d6fd1; --whole: #7fa3a6;
  --pad: #ffffff; }
@media (prefers-color-scheme: dark) { svg { --card: #14191c; --panel: #1b2226; --ink: #e4ecec;
  --soft: #9cb0b3; --line: #3a474c; --code: #11171a; --t0: #2cc0b1; --t1: #f0b54a; --t2: #f07f8d;
  --t3: #9a9cf2; --whole: #6c9094; --pad: #14191c; } }
text { font: 14px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: var(--ink); }
.name { font-size: 25px; font-weight: 650; }
.soft { fill: var(--soft); font-size: 13px; }
.code { font: 12.5px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; white-space: pre; }
.pass { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: var(--soft); }
.mid { text-anchor: middle; } .end { text-anchor: end; }
.card { fill: var(--card); } .panel { fill: var(--panel); } .box { fill: var(--code); }
.tile { fill: var(--card); stroke-width: 2; }
.edge { fill: none; stroke: var(--soft); }
.vertex { fill: var(--code); stroke: var(--line); }
.arrow { fill: none; stroke: var(--soft); stroke-width: 1.5; marker-end: url(#tip); }
.tip { fill: var(--soft); }
.whole { fill: var(--whole); } .pad { fill: url(#hatch); } .hatch { stroke: var(--soft); }
.grid { fill: none; stroke: var(--card); stroke-opacity: .55; stroke-width: .8; }
.sheet { fill: none; stroke: var(--card); stroke-opacity: .8; } .busy { fill: var(--soft); }
.outline { fill: none; stroke: var(--ink); stroke-opacity: .5; }
.c0 { fill: var(--t0); } .c1 { fill: var(--t1); } .c2 { fill: var(--t2); } .c3 { fill: var(--t3); }
.s0 { stroke: var(--t0); } .s1 { stroke: var(--t1); } .s2 { stroke: var(--t2); }
.s3 { stroke: var(--t3); } .move { fill: none; stroke-width: 2; }
"""


@dataclass
class _Pen:
    """Collects the elements of the picture.

    Attributes:
        y: how far down the picture is filled.
    """

    parts: list[str] = field(default_factory=list[str])
    y: float = 0

    def rect(
        self, x: float, y: float, width: float, height: float, kind: str, round_: float = 0
    ) -> None:
        corner = f' rx="{round_:g}"' if round_ else ""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"{corner} '
            f'class="{kind}"/>'
        )

    def text(self, x: float, y: float, text: str, kind: str = "") -> None:
        style = f' class="{kind}"' if kind else ""
        self.parts.append(f'<text x="{x:g}" y="{y:g}"{style}>{escaped(text)}</text>')

    def path(self, path: str, kind: str) -> None:
        self.parts.append(f'<path d="{path}" class="{kind}"/>')

    def code(self, lines: Sequence[str], y: float) -> float:
        """Lines of IR in a box; returns where the box ends."""
        height = 18 * len(lines) + 14
        self.rect(MARGIN, y, WIDTH - 2 * MARGIN, height, "box", 6)
        for i, line in enumerate(lines):
            self.text(MARGIN + 14, y + 21 + 18 * i, line, "code")
        return y + height

    def field(self, senders: NDArray[np.int64], x: float, y: float, cell: float) -> None:
        """A matrix of elements in the colours of the tiles that they came from."""
        rows, columns = senders.shape
        for row, first, count, sender in _runs(senders):
            at = x + first * cell, y + row * cell
            self.rect(*at, count * cell, cell, _colour(sender))
        lines = [f"M{x + i * cell:g} {y:g}v{rows * cell:g}" for i in range(1, columns)]
        lines += [f"M{x:g} {y + i * cell:g}h{columns * cell:g}" for i in range(1, rows)]
        self.path("".join(lines), "grid")
        self.rect(x, y, columns * cell, rows * cell, "outline")

    def stack(
        self, sheets: int, senders: NDArray[np.int64], x: float, y: float, cell: float, by: float
    ) -> None:
        """Several equal sheets of elements, the first one in front."""
        rows, columns = senders.shape
        for i in range(sheets - 1, 0, -1):
            at = x + i * by, y - i * by
            for row, first, count, sender in _runs(senders):
                place = at[0] + first * cell, at[1] + row * cell
                self.rect(*place, count * cell, cell, _colour(sender))
            self.rect(*at, columns * cell, rows * cell, "sheet")
        self.field(senders, x, y, cell)


def _runs(senders: NDArray[np.int64]) -> Iterator[tuple[int, int, int, int]]:
    """Neighbours in a row from one tile: the row, the first column, how many, and the tile."""
    for row, line in enumerate(senders):
        begins = np.flatnonzero(np.diff(line, prepend=line[0] - 1))
        ends = np.append(begins[1:], len(line))
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            yield row, begin, end - begin, int(line[begin])


WHOLE = -2
"""The tile of an element at nn, where no tile is chosen yet."""


def _colour(sender: int) -> str:
    return {PADDING: "pad", WHOLE: "whole"}.get(sender, f"c{sender}")


def drawn(found: Example) -> str:
    """The picture of an example, as the text of an SVG file."""
    pen = _Pen()
    pen.text(MARGIN - 22, 46, "One convolution, from tensors to bytes", "name")
    pen.text(
        WIDTH - MARGIN + 22, 45, "A colour is the tile that held an element first.", "end soft"
    )
    pen.y = 68
    for panel, way in (
        (_nn, ""),
        (_partition, PASSES[0]),
        (_tile, PASSES[1]),
        (_exchange, PASSES[2]),
    ):
        if way:
            pen.path(f"M{MARGIN + 60} {pen.y + 4}v28", "arrow")
            pen.text(MARGIN + 78, pen.y + 24, way, "pass")
            pen.y += 44
        begin, at = pen.y, len(pen.parts)
        panel(pen, found)
        pen.y += 18
        back = _Pen()
        back.rect(MARGIN - 22, begin, WIDTH - 2 * MARGIN + 44, pen.y - begin, "panel", 12)
        pen.parts[at:at] = back.parts
    height = pen.y + 26
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" '
        f'width="{WIDTH}" height="{height:g}" role="img" aria-labelledby="title">',
        '<title id="title">One convolution at nn, partition, tile and exchange</title>',
        f"<style>{STYLE}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" class="tip"/></marker>'
        '<pattern id="hatch" width="4" height="4" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><path d="M0 0v4" class="hatch"/></pattern></defs>',
        f'<rect width="{WIDTH}" height="{height:g}" rx="14" class="card"/>',
    )
    return "\n".join([*head, *pen.parts, "</svg>", ""])


PASSES = (
    "fuse-chains, plan-splits, convert-nn-to-partition",
    "convert-partition-to-tile, schedule-supersteps, allocate, group-supersteps",
    "convert-tile-to-exchange",
)
"""The passes between two levels that leave a trace in this example."""


def _title(pen: _Pen, name: str, meaning: str) -> None:
    pen.text(MARGIN, pen.y + 38, name, "name")
    pen.text(MARGIN + 156, pen.y + 37, meaning)
    pen.y += 62


def _sizes(shape: Sequence[int]) -> str:
    return " \N{MULTIPLICATION SIGN} ".join(map(str, shape))


def _nn(pen: _Pen, found: Example) -> None:
    """Whole tensors, and the operations between them."""
    _title(pen, "nn", "What is computed. Tensors are whole, and no machine is in sight.")
    image, weights, result = (found.variables[n].shape for n in (IMAGE, WEIGHTS, RESULT))
    y = pen.y + 50
    pen.stack(image[1], np.full(image[2:], WHOLE), 90, y, CELL, 7)
    pen.text(330, y + 74, "\N{ASTERISK OPERATOR}", "name")
    pen.text(164, y + 152, f"%image  {_sizes(image)}", "mid soft")
    for i in range(weights[0]):
        at = 420 + i % 4 * 62, y + 30 + i // 4 * 58
        pen.stack(weights[1], np.full(weights[2:], WHOLE), *at, CELL, 4)
    pen.text(528, y + 152, f"%w  {_sizes(weights)}", "mid soft")
    pen.path(f"M690 {y + 64}h84", "arrow")
    pen.text(728, y + 54, "nn.conv", "mid pass")
    pen.text(728, y + 84, "nn.relu", "mid pass")
    pen.stack(result[1], np.full(result[2:], WHOLE), 830, y, CELL, 7)
    pen.text(904, y + 152, f"%1  {_sizes(result)}", "mid soft")
    lines = [*found.lines("nn", r"nn\.conv", 1), *found.lines("nn", r"nn\.relu")]
    pen.y = pen.code([line[4:] for line in lines], y + 172)


def _partition(pen: _Pen, found: Example) -> None:
    """The parts that the plan makes, and the blocks that they need."""
    _title(pen, "partition", "How it is split. A layout says which tile holds which elements.")
    own, window = found.variables[IMAGE], found.variables[WINDOW]
    y = pen.y + 44
    pen.stack(own.shape[1], _whole(own), 90, y, CELL, 7)
    pen.text(164, y + 152, "image in #layout0: rows in parts", "mid soft")
    pen.path(f"M280 {y + 64}h74", "arrow")
    pen.text(316, y + 54, "relayout", "mid pass")
    for tile, senders in enumerate(window.senders[:, 0, 0]):
        x, top = 396 + tile % 2 * 330, y - 8 + tile // 2 * 92
        rows, columns = senders.shape
        pen.field(senders, x, top, CELL)
        first = int(window.first[tile, 2])
        pen.text(x + columns * CELL + 10, top + 20, f"part {tile}")
        pen.text(
            x + columns * CELL + 10,
            top + 38,
            f"rows {first} … {first + rows - 1}".replace("-", "\N{MINUS SIGN}"),
            "soft",
        )
    pen.text(
        706,
        y + 152,
        "image in #layout3: each part with its halo, padded with zeros (hatched)",
        "mid soft",
    )
    lines = [
        *found.lines("partition", "#layout0 ="),
        *found.lines("partition", "#layout3 ="),
        *(line[4:] for line in found.lines("partition", r"partition\.relayout\(%image\)", 1)),
        *(line[4:] for line in found.lines("partition", r"partition\.compute")),
    ]
    pen.y = pen.code(lines, y + 172)


def _whole(v: HeldVariable) -> NDArray[np.int64]:
    """The tile of each row and column of the first channel of a tensor that is cut in rows."""
    return np.concatenate(list(v.senders[:, 0, 0]), 0)


def _tile(pen: _Pen, found: Example) -> None:
    """The variables of each tile, the copies that fill them, and the vertex that reads them."""
    _title(pen, "tile", "What each tile does: variables, copies, and vertices that run codelets.")
    own, window, filters, result = (found.variables[n] for n in (IMAGE, WINDOW, FILTERS, RESULT))
    tiles, wide, top = len(own.senders), 250, pen.y
    lefts = [MARGIN + i * (wide + 10.6) for i in range(tiles)]
    for tile, x in enumerate(lefts):
        pen.rect(x, top, wide, 300, f"tile s{tile}", 10)
    received = found.received(WINDOW)
    for to, sender in np.argwhere(received).tolist():
        row = top + 60 + (21 if sender < to else 3)
        into = top + 140 + (3 if sender < to else 33)
        begin, end = (
            lefts[sender] + (110 if sender < to else 14),
            lefts[to] + (14 if sender < to else 122),
        )
        middle = (begin + end) / 2
        pen.path(
            f"M{begin:g} {row}C{middle:g} {row} {middle:g} {into} {end:g} {into}", f"move s{sender}"
        )
    for tile, x in enumerate(lefts):
        pen.text(x + 14, top + 24, f"tile {tile}")
        pen.text(x + 14, top + 52, "@arg0", "pass")
        pen.field(own.senders[tile, 0, 0], x + 14, top + 60, 6)
        pen.text(x + 14, top + 132, f'@"{WINDOW}"', "pass")
        pen.field(window.senders[tile, 0, 0], x + 14, top + 140, 6)
        pen.text(x + 150, top + 52, "@arg1", "pass")
        pen.text(x + 150, top + 132, "…/in1", "pass")
        _filters(pen, found.variables[WEIGHTS].senders[tile], x + 150, top + 62)
        _filters(pen, filters.senders[tile], x + 150, top + 142)
        pen.rect(x + 14, top + 202, wide - 28, 26, "vertex", 13)
        pen.text(x + wide / 2, top + 219, "vertex: mul sum then relu", "mid soft")
        pen.path(f"M{x + 60:g} {top + 180}v18", "arrow")
        pen.path(f"M{x + 186:g} {top + 180}v18", "arrow")
        pen.path(f"M{x + 168:g} {top + 229}v14", "arrow")
        pen.stack(result.shape[1], result.senders[tile, 0, 0], x + 116, top + 268, 5, 3)
        pen.text(x + 14, top + 284, f'@"{RESULT}"', "pass")
    lines = [line[4:] for line in found.lines("tile", r'superstep @"conv', 6)]
    pen.y = pen.code([line for line in lines if line.strip() != "}"], top + 318)


def _filters(pen: _Pen, senders: NDArray[np.int64], x: float, y: float) -> None:
    """The filters that a tile holds, two rows of four, in the colours of their senders."""
    for i, each in enumerate(senders[:, 0]):
        pen.field(each, x + i % 4 * 23, y + i // 4 * 20, 5.5)


def _exchange(pen: _Pen, found: Example) -> None:
    """The memory of each tile by address, and the time that the superstep takes."""
    _title(pen, "exchange", "When and where: supersteps, messages, and an address for every byte.")
    held = found.variables
    end = max(v.address + v.bytes for v in held.values())
    left, wide, top, tall = MARGIN + 60, 800, pen.y + 46, 26
    scale = wide / end
    for name in (IMAGE, WEIGHTS, WINDOW, FILTERS):
        v = held[name]
        pen.text(left + v.address * scale, top - 24, f"@{name}", "pass")
        pen.text(left + v.address * scale, top - 9, f"{v.address:,}", "soft")
    received = found.received(WINDOW) + found.received(FILTERS)
    pen.text(left + wide + 24, top - 24, "received from", "pass")
    pen.text(left + wide + 24, top - 9, "other tiles", "pass")
    for tile in range(len(received)):
        y = top + tile * (tall + 12)
        pen.text(MARGIN, y + 18, f"tile {tile}")
        pen.rect(left, y, wide, tall, "box")
        for name in (IMAGE, WEIGHTS, WINDOW, FILTERS):
            v = held[name]
            line = v.senders[tile].reshape(1, -1)
            each = v.bytes * scale / line.shape[1]
            for _, first, count, sender in _runs(line):
                at = left + v.address * scale + first * each
                pen.rect(at, y, count * each, tall, _colour(sender))
            pen.rect(left + v.address * scale, y, v.bytes * scale, tall, "outline")
        pen.text(left + wide + 24, y + 18, f"{int(received[tile].sum()):,} bytes", "soft")
    y = top + len(received) * (tall + 12)
    result = held[RESULT]
    pen.path(f"M{left + result.address * scale:g} {y}v8h{result.bytes * scale:g}v-8", "edge")
    pen.text(
        left,
        y + 26,
        f'@"{RESULT}" takes {result.address:,} … {result.address + result.bytes:,} '
        "in the same superstep",
        "soft",
    )
    pen.text(left + wide, y + 26, f"byte {end:,}", "end soft")
    y += 62
    step = found.step
    phases = [
        ("sync", step.sync_cycles),
        ("exchange", step.exchange_cycles),
        ("compute", step.compute_cycles),
    ]
    total, at = sum(n for _, n in phases), float(left)
    pen.text(MARGIN, y + 13, "time")
    for (_, cycles), kind in zip(phases, ("pad", "busy", "whole"), strict=True):
        pen.rect(at, y, cycles / total * wide, 18, kind)
        pen.rect(at, y, cycles / total * wide, 18, "outline")
        at += cycles / total * wide
    pen.text(
        left, y + 38, ", ".join(f"{name} {cycles:,}" for name, cycles in phases) + " cycles", "soft"
    )
    lines = [
        line.strip().split(" layout")[0]
        for name in (IMAGE, WEIGHTS, WINDOW, FILTERS, RESULT)
        for line in found.lines("exchange", rf'exchange\.variable @"?{re.escape(name)}"? ')
    ]
    pen.y = pen.code(lines, y + 54)
