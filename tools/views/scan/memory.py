"""Checks that there is enough memory before any long work starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ....ir.support.errors import InputError
from ....ir.support.host_memory import available_bytes
from .sample import EDGES_A_VERTEX, LEAST, MOST
from .threads import SLICES

VERTEX_BYTES = 24 * SLICES + 48
"""Bytes per vertex in a layout: one sum of forces per slice, place, set, layer, and copies."""

DRAWN_BYTES = 32
"""Bytes per vertex while it is drawn: places in the layout and on the sheet, set, ink."""

EDGE_BYTES = 40
"""Bytes per edge of the sample: its ends, weight and share, and keys of its groups."""

PIXEL_BYTES = 16 * SLICES + 64
"""Bytes per pixel: one sum of light per slice, that of points, and the picture being made."""

BASE_BYTES = 400_000_000
"""Bytes of the program itself and its libraries."""

BLOCK_BYTES = 4_000_000 * 16
"""Bytes of one block of edges."""


class Counted(Protocol):
    """Something with a number of vertices and edges."""

    @property
    def vertex_count(self) -> int:
        """The number of vertices."""
        ...

    @property
    def edge_count(self) -> int:
        """The number of edges."""
        ...


def needed_bytes(graph: Counted, size: int) -> int:
    """The approximate memory in bytes that a picture with `size` pixels per side needs."""
    kept = min(max(EDGES_A_VERTEX * graph.vertex_count, LEAST), MOST, graph.edge_count)
    laying = VERTEX_BYTES * graph.vertex_count + EDGE_BYTES * kept
    drawing = DRAWN_BYTES * graph.vertex_count + PIXEL_BYTES * size * size
    return BASE_BYTES + BLOCK_BYTES + max(laying, drawing)


def check_memory(graph: Counted, size: int, available: int | None = None) -> None:
    """Raise InputError if a picture needs more memory than there is; suggest a smaller picture."""
    free = available_bytes() if available is None else available
    needed = needed_bytes(graph, size)
    if free is None or needed <= free:
        return
    share = 2
    while needed_bytes(_one_in(graph, share), size) > free and share < 1 << 20:
        share *= 2
    fits = needed_bytes(_one_in(graph, share), size) <= free
    advice = (
        f"--sample 1/{share} draws some of them, and says so"
        if fits
        else f"need a smaller --size than {size:,}"
    )
    raise InputError(
        f"{graph.vertex_count:,} vertices and {graph.edge_count:,} edges on {size:,} x {size:,} "
        f"pixels need about {needed / 1e9:.1f} GB of memory, {free / 1e9:.1f} GB are free; {advice}"
    )


@dataclass(frozen=True)
class _Numbers:
    vertex_count: int
    edge_count: int


def _one_in(graph: Counted, share: int) -> _Numbers:
    return _Numbers(graph.vertex_count // share, graph.edge_count // share)
