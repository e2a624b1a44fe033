"""What can be drawn: the vertices and edges of a compiled program, or of a test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from ....backends.graph import EdgeBlock, Link, VertexSet


class Drawable(Protocol):
    """The part of a graph that a picture needs; see backends.graph.Graph."""

    @property
    def sets(self) -> Sequence[VertexSet]:
        """Vertex sets, whose ids follow each other."""
        ...

    @property
    def links(self) -> Sequence[Link]:
        """What joins two sets, by number."""
        ...

    @property
    def vertex_count(self) -> int:
        """Vertices."""
        ...

    @property
    def edge_count(self) -> int:
        """Edges that `edges` gives."""
        ...

    @property
    def target(self) -> str:
        """The machine that it was compiled for."""
        ...

    @property
    def tiles(self) -> int:
        """Tiles of that."""
        ...

    def vertices(self, first: int = 0, last: int | None = None) -> dict[str, NDArray[Any]]:
        """Columns of vertices."""
        ...

    def edges(self, most: int = 4_000_000, loops: bool = False) -> Iterator[EdgeBlock]:
        """Edges, some at a time."""
        ...
