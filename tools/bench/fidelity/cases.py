"""What a measurement is of, as abele prices it: shapes, element types and a machine, no names.

Each case knows its work, so that a rate that somebody published can be read as cycles.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod


@dataclass(frozen=True)
class Vertex:
    """A contraction by the conv units, on every tile at once: [field, in] by [in, out]."""

    field: int
    in_channels: int
    out_channels: int
    kernel: int
    groups: int
    operand: str
    partials: str

    @property
    def operations(self) -> float:
        """Additions and multiplications of one tile."""
        macs = self.field * self.in_channels * self.out_channels * self.kernel * self.groups
        return 2.0 * macs


@dataclass(frozen=True)
class Elementwise:
    """A function of every element of a block on each tile.

    function: "scaled_add", "reduce", or one that `backends.cost` has a loop for. depth: elements
    that a reduction makes one of. bracketed: whether the readings of the counter are in the
    measured cycles.
    """

    function: str
    operands: int
    elements: int
    dtype: str
    in_place: bool = False
    bracketed: bool = False
    depth: int = 1

    @property
    def operations(self) -> float:
        """One an element, two of a scaled addition."""
        return self.elements * (2.0 if self.function == "scaled_add" else 1.0)


@dataclass(frozen=True)
class Triad:
    """a = b + q * c, streamed through memory, again and again. elements: of one tile."""

    elements: int
    dtype: str
    element_bytes: int

    @property
    def operations(self) -> float:
        """A multiplication and an addition an element."""
        return 2.0 * self.elements

    @property
    def bytes(self) -> float:
        """Two operands read, one result written."""
        return 3.0 * self.elements * self.element_bytes


@dataclass(frozen=True)
class Product:
    """A dense matrix product [m, k] by [k, n], as often as batch says."""

    m: int
    k: int
    n: int
    batch: int
    operand: str
    partials: str

    @property
    def operations(self) -> float:
        """Additions and multiplications of all tiles."""
        return 2.0 * self.batch * self.m * self.k * self.n


@dataclass(frozen=True)
class Convolution:
    """A convolution as networks have them.

    image, kernel: sizes along the spatial axes. pads: before and after, along each of them.
    """

    batch: int
    in_channels: int
    out_channels: int
    groups: int
    image: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    operand: str
    partials: str

    @property
    def positions(self) -> tuple[int, ...]:
        """Sizes of the result along the spatial axes."""
        return tuple(
            (n + low + high - d * (k - 1) - 1) // s + 1
            for n, k, s, d, (low, high) in zip(
                self.image, self.kernel, self.stride, self.dilation, self.pads, strict=True
            )
        )

    @property
    def operations(self) -> float:
        """Additions and multiplications of all tiles."""
        outputs = self.batch * self.out_channels * prod(self.positions)
        return 2.0 * outputs * prod(self.kernel) * self.in_channels / self.groups


PHASES = ("step", "sync", "exchange", "global exchange", "pre", "post", "compute")
"""What of a stencil's step is measured: all of it, or one phase."""


@dataclass(frozen=True)
class Stencil:
    """One step of a stencil over a grid, in a codelet that a compiler made of a loop.

    grid: sizes of the spatial axes. channels: values of a point, stored together. taps:
    neighbours read for one value, itself included. weights: different ones among them.
    vector: values that one instruction works on. more: arithmetic beyond the weighted sum.
    """

    grid: tuple[int, ...]
    channels: int
    taps: int
    weights: int
    vector: int
    dtype: str
    phase: str = "step"
    more: int = 0

    @property
    def arithmetic(self) -> int:
        """Additions, a multiplication for each different weight, and more."""
        return self.taps - 1 + self.weights + self.more

    @property
    def operations(self) -> float:
        """Arithmetic of all tiles."""
        return float(prod(self.grid) * self.channels * self.arithmetic)


@dataclass(frozen=True)
class SparseProduct:
    """[m, k] in blocks, of which a share is there, by a dense [k, n].

    dynamic: whether the blocks are known only when the program runs.
    """

    m: int
    k: int
    n: int
    block: int
    density: float
    dynamic: bool
    operand: str
    partials: str

    @property
    def operations(self) -> float:
        """Additions and multiplications of the blocks that are there, on all tiles."""
        return 2.0 * self.m * self.k * self.n * self.density


Case = Vertex | Elementwise | Triad | Product | Convolution | Stencil | SparseProduct

FAMILIES = ("amp", "vector", "triad", "gemm", "bsp", "stencil", "conv", "spmm")
"""The families of measurements, in the order in which they are shown."""
