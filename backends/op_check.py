"""Checks every operation of a run against the result that its actual operands should give."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np

from ..dialects.steps import Copy, Superstep, Vertices
from ..dialects.structured import Structure
from ..ir.geometry.blocks import block_view, numerators, window_view
from ..ir.geometry.grid import Run, shape_classes
from ..ir.geometry.layout import Layout
from ..ir.geometry.space import Space
from ..ir.provenance import origin
from ..ir.support.arrays import Array
from ..ir.support.number_kinds import is_floating
from .codelets.conversion import float_limits
from .codelets.numerics import Placed
from .evaluate.blocks import Blocks, holds_all, holds_once, read_blocks
from .machine import Machine, Observer
from .reference.compare import Worst, worst_of
from .reference.moves import evaluate_moves
from .reference.structure import evaluate_structure

T = TypeVar("T")
R = TypeVar("R")

MANY = 2
"""From this number of tensors on, several threads read the blocks."""


@dataclass(frozen=True)
class Mismatch:
    """The first element of a block that is not the tensor's: its tile, its index, both values.

    Attributes:
        index: the index of the element in the layout's viewed shape; () for padding.
    """

    tile: int
    index: tuple[int, ...]
    actual: float
    expected: float


@dataclass(frozen=True)
class Finding:
    """An operation whose result is outside its limits.

    Attributes:
        kind: "operand" if blocks of an operand disagree with each other, "result" if blocks of the
            result do, "value" if a result is outside its bound, "move" if blocks differ from what
            was moved.
        origin: the node that the operation came from.
        ratio: the error divided by its bound; inf where bits must be equal.
        index: the index of the worst element, in its tensor's viewed shape.
    """

    kind: Literal["operand", "result", "value", "move"]
    op: str
    variable: str
    origin: str | None
    superstep: str
    ratio: float
    tile: int
    index: tuple[int, ...]
    actual: float
    expected: float
    bound: float

    def __str__(self) -> str:
        what = {
            "operand": "blocks of an operand disagree",
            "result": "blocks of the result disagree",
            "value": f"error is {self.ratio:.3g} times its bound {self.bound:.3g}",
            "move": "a block is not what was moved",
        }[self.kind]
        return (
            f"{self.origin or self.op} in superstep @{self.superstep}: @{self.variable}: {what}: "
            f"element {list(self.index)} on tile {self.tile} is {self.actual!r}; "
            f"need {self.expected!r}"
        )


@dataclass(frozen=True)
class Overflow:
    """The first operation whose result has infinities or NaN although its operands are finite.

    Attributes:
        dtype: the element type of its result.
        count: how many elements of the result are not finite.
        size: how many elements the result has.
        largest: the largest magnitude of its operands.
        origin: the node that the operation came from.
    """

    op: str
    variable: str
    origin: str | None
    superstep: str
    dtype: np.dtype[Any]
    count: int
    size: int
    largest: float

    def __str__(self) -> str:
        most = float_limits(self.dtype).largest
        return (
            f"{self.origin or self.op} in superstep @{self.superstep} is the first: {self.count} "
            f"of {self.size} elements of @{self.variable}, of operands up to {self.largest:.3g}; "
            f"{self.dtype.name} ends at {most:.6g}"
        )


@dataclass(frozen=True)
class _Judged:
    """The verdict on one operation: its error divided by the bound, its fault, its overflow."""

    ratio: float = 0.0
    finding: Finding | None = None
    overflow: Overflow | None = None


class Judge:
    """Compares results and bytes with NumPy. Subclasses find the same faster."""

    def largest_ratio(
        self, structure: Structure, operands: Sequence[Array], actual: Array, result: int
    ) -> float:
        """The largest ratio of error to bound of a vertex set's result. Arguments as for
        worst_of_vertices."""
        return worst_of_vertices(structure, operands, actual, result).ratio

    def are_equal(self, left: Array, right: Array) -> bool:
        """Whether all bits of two arrays of one shape and dtype are equal."""
        return np.array_equal(_bits(left), _bits(right))


class OpCheck(Observer):
    """Checks every vertex set and every move of a machine's runs against the fp64 reference.

    A vertex set must be within its error bound on the operands that it received; a move must be
    equal to the bit.

    Attributes:
        first: the first operation that breaks this, in the order of execution.
        checked: the number of operations checked.
        largest_ratio: the largest error/bound of any result so far.
        overflow: the first operation that makes infinities or NaN of finite operands. That is
            within any bound, but nothing can be compared after it.
        pool: threads that compare results with the reference while the machine goes on. Blocks are
            read before the machine goes on.
        at_once: how many results may wait for these threads. Each holds copies of its operands.
        judge: compares results and bytes. If it finds a difference, NumPy looks for the place.
    """

    def __init__(
        self, pool: Executor | None = None, at_once: int = 1, judge: Judge | None = None
    ) -> None:
        self.checked = 0
        self._pool, self._at_once = pool, at_once
        self._judge = judge or Judge()
        self._waiting: deque[Future[_Judged]] = deque()
        self._first: Finding | None = None
        self._overflow: Overflow | None = None
        self._largest_ratio = 0.0
        self._moves: list[Copy] = []
        self._moved: dict[str, Array] = {}
        self._operands: list[Array] = []

    @property
    def first(self) -> Finding | None:
        """The first operation that is wrong."""
        self._settle(0)
        return self._first

    @property
    def overflow(self) -> Overflow | None:
        """The first operation that overflows."""
        self._settle(0)
        return self._overflow

    @property
    def largest_ratio(self) -> float:
        """The largest error of a result, divided by its bound."""
        self._settle(0)
        return self._largest_ratio

    def on_move(self, op: Copy, machine: Machine) -> None:
        """Note the move. All moves of a superstep happen at once, and are checked after that."""
        self._moves.append(op)

    def before_compute(self, op: Vertices, machine: Machine) -> None:
        """Keep the operands of a vertex set, and check that their blocks agree.

        Nobody writes the blocks of a tensor without elements, unless a move fills their padding.
        """
        self._check_moves(machine)

        def read(name: str) -> tuple[Array, Mismatch | None]:
            # Nobody has written to what a move of this superstep has just brought.
            dense = self._moved.get(name)
            return self._read(blocks_of(machine, name)) if dense is None else (dense, None)

        found = self._all(read, op.sources)
        self._operands = [dense for dense, _ in found]
        for name, (_, differs) in zip(op.sources, found, strict=True):
            if differs is not None:
                self._bits_differ("operand", op, name, differs)

    def on_compute(self, op: Vertices, machine: Machine) -> None:
        """Compare a result with the reference."""
        self.checked += 1
        for i, name in enumerate(op.destinations):
            blocks = blocks_of(machine, name)
            actual, found = self._read(blocks)
            if found is not None:
                self._bits_differ("result", op, name, found)
            judge = partial(_judged, self._judge, op, self._operands, actual, i, blocks.layout)
            if self._pool is None:
                self._take(judge())
            else:
                self._settle(self._at_once - 1)
                self._waiting.append(self._pool.submit(judge))
        self._operands = []

    def on_superstep(self, op: Superstep, machine: Machine) -> None:
        """Check the moves of a superstep without vertices."""
        self._check_moves(machine)
        self._moved = {}

    def _read(self, blocks: Blocks) -> tuple[Array, Mismatch | None]:
        """The tensor that blocks hold, and where one of them disagrees with it."""
        dense = read_blocks(blocks)
        if not dense.size or holds_once(blocks.layout):
            return dense, None
        return dense, mismatch(blocks, dense, self._judge)

    def _check_moves(self, machine: Machine) -> None:
        moves, self._moves = self._moves, []
        self.checked += len(moves)

        def moved(op: Copy) -> tuple[Array, Mismatch | None]:
            target = blocks_of(machine, op.destination)
            sources = [read_blocks(blocks_of(machine, name)) for name in op.sources]
            dense = moved_tensor(sources, op.spaces, target)
            return dense, mismatch(target, dense, self._judge)

        for op, (dense, found) in zip(moves, self._all(moved, moves), strict=True):
            if found is not None:
                self._bits_differ("move", op, op.destination, found)
            elif holds_all(machine.variables[op.destination].placed):
                self._moved[op.destination] = dense

    def _all(self, function: Callable[[T], R], values: Sequence[T]) -> list[R]:
        """The results of a function for each value, computed by all threads."""
        if self._pool is None or len(values) < MANY:
            return [function(value) for value in values]
        return list(self._pool.map(function, values))

    def _bits_differ(
        self,
        kind: Literal["operand", "result", "move"],
        op: Copy | Vertices,
        variable: str,
        found: Mismatch,
    ) -> None:
        self._settle(0)
        worst = Worst(float("inf"), found.index, found.actual, found.expected, 0.0)
        self._take(_Judged(finding=_finding(kind, op, variable, found.tile, worst)))

    def _settle(self, most: int) -> None:
        """Take verdicts in the order of execution, until at most `most` are still to come."""
        while len(self._waiting) > most:
            self._take(self._waiting.popleft().result())

    def _take(self, judged: _Judged) -> None:
        """Record the verdict on the next operation."""
        self._largest_ratio = max(self._largest_ratio, judged.ratio)
        self._first = self._first or judged.finding
        self._overflow = self._overflow or judged.overflow


def _judged(
    judge: Judge,
    op: Vertices,
    operands: Sequence[Array],
    actual: Array,
    result: int,
    layout: Layout,
) -> _Judged:
    """The verdict on a result.

    Args:
        layout: the layout of the result's blocks.
    """
    # A thread does not inherit how NumPy treats overflows.
    with np.errstate(all="ignore"):
        ratio = judge.largest_ratio(op.structure(), operands, actual, result)
        overflow = overflow_of(op, operands, actual)
        if ratio <= 1:
            return _Judged(ratio, None, overflow)
        worst = worst_of_vertices(op.structure(), operands, actual, result)
    name = op.destinations[result]
    found = _finding("value", op, name, tile_of(layout, worst.index), worst)
    return _Judged(worst.ratio, found, overflow)


def _finding(
    kind: Literal["operand", "result", "value", "move"],
    op: Copy | Vertices,
    variable: str,
    tile: int,
    worst: Worst,
) -> Finding:
    step = op.parent_op()
    return Finding(
        kind=kind,
        op=op.name,
        variable=variable,
        origin=origin(op),
        superstep=step.sym_name.data if isinstance(step, Superstep) else "",
        ratio=worst.ratio,
        tile=tile,
        index=worst.index,
        actual=worst.actual,
        expected=worst.expected,
        bound=worst.bound,
    )


def overflow_of(op: Vertices, operands: Sequence[Array], actual: Array) -> Overflow | None:
    """The overflow of an operation; None if its result is finite, or an operand is not."""
    if is_floating(actual.dtype):
        count = int(np.count_nonzero(~np.isfinite(actual)))
        if count and all(np.isfinite(each).all() for each in operands):
            step = op.parent_op()
            return Overflow(
                op=op.name,
                variable=op.destination,
                origin=origin(op),
                superstep=step.sym_name.data if isinstance(step, Superstep) else "",
                dtype=actual.dtype,
                count=count,
                size=actual.size,
                largest=max(
                    (float(np.abs(each.astype(np.float64)).max(initial=0)) for each in operands),
                    default=0.0,
                ),
            )
    return None


def blocks_of(machine: Machine, variable: str) -> Blocks:
    """A variable in a machine's memory."""
    v = machine.variables[variable]
    return Blocks(Placed(machine.memory, v.start, v.dtype), v.placed)


def worst_of_vertices(
    structure: Structure, operands: Sequence[Array], actual: Array, result: int = 0
) -> Worst:
    """The element of a vertex set's result that is furthest outside its error bound.

    Args:
        operands: the operands in the viewed shapes of the structure's maps, in their own dtypes.
        actual: the result, in such a shape and in its own dtype.
        result: the position of the result among those of the structure.
    """
    value, bound = evaluate_structure(
        structure, operands, actual.dtype, actual.shape, result=result
    )
    return worst_of(actual, value, bound)


def moved_tensor(sources: Sequence[Array], moves: Sequence[Space] | None, target: Blocks) -> Array:
    """The tensor that a copy makes, in the viewed shape of its target."""
    shape, dtype = target.layout.shape, target.placed.dtype
    if moves is None:
        (source,) = sources
        return source.reshape(shape)
    return evaluate_moves(moves, sources, shape, dtype)


def mismatch(blocks: Blocks, dense: Array, judge: Judge | None = None) -> Mismatch | None:
    """The first bit difference between blocks and those that a tensor should have.

    Args:
        dense: the tensor in the layout's viewed shape. Padding and replicas count.
        judge: tells whether bits are equal.
    """
    judge = judge or Judge()
    layout, placed = blocks.layout, blocks.placed
    sizes = tuple(cut.size for cut in layout.grid)
    if 0 in sizes:
        return None
    spread, origins = numerators(dense, layout.access, sizes)
    for cls in shape_classes(layout.grid):
        actual = block_view(placed.memory, placed.address, layout, placed.dtype, cls)
        expected = window_view(spread, origins, layout, cls)
        if not judge.are_equal(actual, expected):
            differs = _bits(actual) != _bits(expected)
            at = tuple(int(i) for i in np.unravel_index(int(differs.argmax()), differs.shape))
            tile, index = _place(layout, cls, at)
            return Mismatch(tile, index, float(actual[at]), float(expected[at]))
    return None


def _bits(array: Array) -> Array:
    if array.dtype.kind == "b":
        return array
    return array.view(f"u{array.dtype.itemsize}")


def _place(
    layout: Layout, cls: tuple[Run, ...], at: tuple[int, ...]
) -> tuple[int, tuple[int, ...]]:
    """The tile of a position in the blocks of a shape class, and the tensor's index there."""
    part, inner = at[: len(cls)], at[len(cls) :]
    cell = sum((run.first + p) * w for run, p, w in zip(cls, part, layout.weights, strict=True))
    index: list[int] = []
    for i, axis in enumerate(layout.access.axes):
        first = axis.offset
        for d, a in axis.terms:
            run = cls[d]
            low = run.start + part[d] * run.size
            first += a * (low if a > 0 else low + run.size - 1)
        numerator = np.array([first + inner[i] * layout.steps[i]], np.int64)
        index.append(int(axis.resolve(numerator)[0]))
    return layout.tiles.of(cell), tuple(index) if min(index, default=0) >= 0 else ()


def tile_of(layout: Layout, index: Sequence[int]) -> int:
    """The first tile whose block holds an element; the layout's first tile if none does."""
    at = dict.fromkeys(range(len(layout.grid)), 0)
    for axis, element in enumerate(index):
        part, elements = layout.members(axis)
        mine = sorted({d for d, _ in layout.access.axes[axis].terms})
        held = part[elements == element]
        if len(held):
            parts = tuple(layout.parts[d] for d in mine)
            at.update(zip(mine, map(int, np.unravel_index(int(held[0]), parts)), strict=True))
    return layout.tiles.of(sum(at[d] * w for d, w in enumerate(layout.weights)))
