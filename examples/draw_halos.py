"""Draws the halo exchange of a program over a plate, as an SVG.

    python examples/draw_halos.py PROGRAM.mlir TARGET CODELETS.py halos.svg [CONSTRAINTS.json]

Each block is drawn where it lies on the plate, with the number of its tile and the bytes that the
tile receives. A line between two blocks is as wide as the bytes that cross there. The blocks of one
tile, in the middle, also show the halo that it reads.
"""

import sys
from pathlib import Path

import numpy as np

from abele.backends.fabrics.traffic import Carried
from abele.backends.prices.price import copy_overlaps, variables_of
from abele.dialects.steps import Copy
from abele.tools import compile_model

WIDTH, EDGE = 560, 10


def drawn(module) -> str:
    """The picture of the first copy that brings a halo."""
    variables = variables_of(module)
    copy = next(op for op in module.walk() if isinstance(op, Copy))
    (shared,) = copy_overlaps(copy, variables)
    flows = Carried(shared, variables[copy.destination].dtype.itemsize).flows()
    blocks, halos = (
        [boxes(layout, axis) for axis in (0, 1)] for layout in (shared.source, shared.destination)
    )
    scale = WIDTH / shared.source.shape[1]
    height = scale * shared.source.shape[0]
    received = np.bincount(flows.destination, flows.bytes, shared.source.cells).astype(int)
    # A tile with neighbours on all sides, if there is one.
    chosen = int(np.argmax(received))

    def rect(found, tile, style) -> str:
        (y0, y1), (x0, x1) = (np.array(each[tile]) * scale + EDGE for each in found)
        size = f'width="{x1 - x0:.1f}" height="{y1 - y0:.1f}"'
        return f'<rect x="{x0:.1f}" y="{y0:.1f}" {size} {style}/>'

    def middle(tile) -> tuple[float, float]:
        y, x = (np.mean(each[tile]) * scale + EDGE for each in blocks)
        return x, y

    parts = [rect(blocks, tile, 'fill="#e8f1f2" stroke="#177e89"') for tile in range(len(received))]
    parts.append(rect(halos, chosen, 'fill="#f4a259" fill-opacity="0.55" stroke="#bc4b51"'))
    parts.append(rect(blocks, chosen, 'fill="#fff3e0" stroke="#bc4b51"'))
    pairs = zip(flows.source, flows.destination, flows.bytes, strict=True)
    for source, destination, moved in pairs:
        if source < destination:
            (x0, y0), (x1, y1) = middle(source), middle(destination)
            parts.append(
                f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" stroke="#177e89" '
                f'stroke-opacity="0.7" stroke-width="{max(moved / 40, 0.75):.2f}"/>'
            )
    for tile, count in enumerate(received):
        x, y = middle(tile)
        parts.append(
            f'<rect x="{x - 30:.1f}" y="{y - 17:.1f}" width="60" height="34" rx="4" fill="white" '
            f'fill-opacity="0.9"/><text x="{x:.1f}" y="{y - 2:.1f}">tile {tile}</text>'
            f'<text x="{x:.1f}" y="{y + 12:.1f}">{count} B</text>'
        )
    size = f'width="{WIDTH + 2 * EDGE}" height="{height + 2 * EDGE:.0f}"'
    style = 'font-family="sans-serif" font-size="12" text-anchor="middle" fill="#223"'
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n'
        f'<rect width="100%" height="100%" fill="white"/>\n<g {style}>\n{body}\n</g>\n</svg>\n'
    )


def boxes(layout, axis: int) -> list[tuple[int, int]]:
    """The first index of each cell's block along an axis, and the one after its last."""
    starts = np.broadcast_to(layout.starts(axis), layout.parts).ravel()
    ends = starts + np.broadcast_to(layout.counts(axis), layout.parts).ravel()
    return list(zip(np.maximum(starts, 0), np.minimum(ends, layout.shape[axis]), strict=True))


if __name__ == "__main__":
    program, target, codelets, picture, *constraints = sys.argv[1:]
    made = compile_model(program, target, load=[codelets], constraints=(*constraints, None)[0])
    Path(picture).write_text(drawn(made.module_at("exchange")))
