"""A graph that can be drawn: that of a compiled program, or of a test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from ....backends.graph import EdgeBlock, Link, VertexSet


class Drawable(Protocol):
    """The part of a graph that a picture needs. See backends.graph.Graph."""

    @property
    def sets(self) -> Sequence[VertexSet]:
        """Vertex sets. Their ids are consecutive."""
        ...

    @property
    def links(self) -> Sequence[Link]:
        """Links between two sets, by number."""
        ...

    @property
    def vertex_count(self) -> int:
        """The number of vertices."""
        ...

    @property
    def edge_count(self) -> int:
        """The number of edges that `edges` returns."""
        ...

    @property
    def crossing_count(self) -> int:
        """The number of these edges that lead from one chip to another."""
        ...

    @property
    def target(self) -> str:
        """The machine that the program was compiled for."""
        ...

    @property
    def tiles(self) -> int:
        """The number of tiles of that machine."""
        ...

    @property
    def chips(self) -> int:
        """The number of chips of that machine."""
        ...

    def vertices(self, first: int = 0, last: int | None = None) -> dict[str, NDArray[Any]]:
        """Columns of vertices."""
        ...

    def edges(self, most: int = 4_000_000, loops: bool = False) -> Iterator[EdgeBlock]:
        """Edges, in blocks."""
        ...
