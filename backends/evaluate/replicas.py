"""Whether the replicas of a variable hold the same bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...ir.geometry.grid import Cut, Run, shape_classes
from ..codelets.calls import Array
from .blocks import Blocks


def replicas_differ(blocks: Blocks) -> bool:
    """Whether two tiles hold different bits of a block that the layout repeats."""
    layout = blocks.layout
    repeated = layout.replica_dims
    # Copies have equal sizes, whatever the sizes of the dimension that numbers them.
    grid = tuple(
        Cut(cut.parts, cut.parts, chips=cut.chips) if d in repeated else cut
        for d, cut in enumerate(layout.grid)
    )
    even = Blocks(blocks.placed, replace(layout, grid=grid))
    # Cells of one shape on several chips are several classes.
    first: dict[tuple[Run, ...], Array] = {}
    for cls, view in zip(shape_classes(grid), even.views(), strict=True):
        # Bits are compared, because NaN differs from itself and zeros have signs.
        bits = np.ascontiguousarray(view).view(f"u{view.dtype.itemsize}")
        key = tuple(run for d, run in enumerate(cls) if d not in repeated)
        own = first.setdefault(key, _first(bits, repeated))
        if (bits != own).any():
            return True
    return False


def _first(values: Array, dims: tuple[int, ...]) -> Array:
    """The first element along some axes, which remain."""
    for d in dims:
        values = values.take([0], axis=d)
    return values
