"""What was measured, in the terms that abele prices: shapes and element types, without names.

Each case knows its number of operations, so that a published rate can be converted to cycles.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod


@dataclass(frozen=True)
class Vertex:
    """A contraction by the convolution units of every tile: [field, in] by [in, out]."""

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

    Attributes:
        function: "scaled_add", "reduce", or one that `prices.cost` has a loop for.
        elements: number of elements of one tile.
        depth: number of elements that a reduction combines into one.
        bracketed: whether the measured cycles include reading the cycle counter.
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
        """One per element, or two for a scaled addition."""
        return self.elements * (2.0 if self.function == "scaled_add" else 1.0)


@dataclass(frozen=True)
class Triad:
    """a = b + q * c, streamed through memory many times.

    Attributes:
        elements: elements of one tile.
    """

    elements: int
    dtype: str
    element_bytes: int

    @property
    def operations(self) -> float:
        """A multiplication and an addition per element."""
        return 2.0 * self.elements

    @property
    def bytes(self) -> float:
        """Bytes read and written: two operands and one result."""
        return 3.0 * self.elements * self.element_bytes


@dataclass(frozen=True)
class Product:
    """A batch of dense matrix products [m, k] by [k, n]."""

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
    """A convolution of a network.

    Attributes:
        image, kernel: sizes along the spatial axes.
        pads: padding before and after, along each of them.
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
"""The measured part of a stencil's step: the whole step, or one phase."""


@dataclass(frozen=True)
class Stencil:
    """One step of a stencil over a grid, in a codelet that a compiler made from a loop.

    Attributes:
        grid: sizes of the spatial axes.
        channels: number of values per point, stored together.
        taps: number of values read for one value, itself included.
        weights: number of different weights.
        vector: number of values per instruction.
        phase: the measured part, one of PHASES.
        more: operations in addition to the weighted sum.
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
        """Operations per value: additions, a multiplication per different weight, and `more`."""
        return self.taps - 1 + self.weights + self.more

    @property
    def operations(self) -> float:
        """Operations of all tiles."""
        return float(prod(self.grid) * self.channels * self.arithmetic)


@dataclass(frozen=True)
class SparseProduct:
    """A product of a block-sparse matrix [m, k] and a dense one [k, n].

    Attributes:
        block: height and width of a block.
        density: share of the blocks that are not zero.
        dynamic: whether the positions of the blocks are known only when the program runs.
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
        """Additions and multiplications of the blocks that are not zero, on all tiles."""
        return 2.0 * self.m * self.k * self.n * self.density


@dataclass(frozen=True)
class SpeedUp:
    """How many times as long the dense product takes as a sparse one of the same sizes."""

    product: SparseProduct

    @property
    def operations(self) -> float:
        """None, as a ratio counts none."""
        return 0.0


@dataclass(frozen=True)
class Network:
    """A run of a whole network.

    Attributes:
        name: one of `importers.light_networks`.
        partials: "" for the type that the compiler chooses.
        io_tiles: tiles of the chip that only move data from and to the host.
    """

    name: str
    batch: int
    operand: str
    partials: str
    io_tiles: int = 0

    @property
    def operations(self) -> float:
        """None, as no published rate of a network counts them. Rates count samples."""
        return 0.0


@dataclass(frozen=True)
class Schedule:
    """An exchange whose schedule is known: when its last word arrives, by the sender's list.

    Attributes:
        cycles: of the schedule.
    """

    cycles: int

    @property
    def operations(self) -> float:
        """None, as an exchange counts none."""
        return 0.0


Case = (
    Vertex
    | Elementwise
    | Triad
    | Product
    | Convolution
    | Stencil
    | SparseProduct
    | SpeedUp
    | Network
    | Schedule
)

ON_CHIPS = ("bsp", "stencil")
"""The families of which measurements on several chips are priced."""

ACROSS = " across chips"
"""What is added to the family of a measurement on several chips."""

FAMILIES = (
    *("amp", "vector", "triad", "gemm", "bsp", "stencil", "conv", "spmm", "schedule"),
    *(f"{each}{ACROSS}" for each in ON_CHIPS),
    "network",
)
"""The families of measurements, in the order in which they are shown."""
