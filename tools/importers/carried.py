"""Values with padding that enter and leave regions of control flow, each with its lengths."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TypeVar, cast

from xdsl.ir import Block, Operation, SSAValue

from ...dialects import nn
from .building import NodeBuilder
from .length_values import emitted_length, number_in
from .lengths import Length, as_length, is_equal
from .padding import LEAST_CAPACITY, fitted, lengths_along, mark, sizes_of

T = TypeVar("T")


@contextmanager
def reopened(node: NodeBuilder, block: Block) -> Generator[None]:
    """Let the node add operations to the end of a block, inside the `with`."""
    outer = node.program.region
    node.program.region = block
    try:
        yield
    finally:
        node.program.region = outer


def _is_inside(value: SSAValue, blocks: Sequence[Block]) -> bool:
    """Whether a value belongs to one of some blocks, or to a region inside one."""
    owner = value.owner
    block = owner.parent_block() if isinstance(owner, Operation) else owner
    while block is not None:
        if any(block is each for each in blocks):
            return True
        block = block.parent_block()
    return False


def _is_known_outside(length: Length, blocks: Sequence[Block]) -> bool:
    """Whether a length can be computed outside of some blocks."""
    values = (cast("SSAValue", number.value) for number in length.numbers())
    return not any(_is_inside(each, blocks) for each in values)


class OtherTypesError(Exception):
    """Two branches give results of different element types, or of different ranks."""


class Joined:
    """The results of two branches, in the types that hold both.

    Raises OtherTypesError if there are none.

    Args:
        blocks: of the branches.
        results: of each branch.
    """

    def __init__(
        self, node: NodeBuilder, blocks: Sequence[Block], results: Sequence[Sequence[SSAValue]]
    ) -> None:
        self._node, self._blocks, self._results = node, blocks, results
        self._open: list[dict[int, tuple[int, Length | None]]] = []
        first, second = results
        if len(first) != len(second):
            raise OtherTypesError
        for pair in zip(first, second, strict=True):
            shapes = [nn.shape_of(each) for each in pair]
            if nn.element_of(pair[0]) != nn.element_of(pair[1]) or len({*map(len, shapes)}) > 1:
                raise OtherTypesError
            lengths = zip(*(lengths_along(node, each) for each in pair), strict=True)
            found: dict[int, tuple[int, Length | None]] = {}
            for axis, (a, b) in enumerate(lengths):
                if isinstance(a, int) and a == b:
                    continue
                own = as_length(a) if is_equal(a, b) else None
                shared = own if own is not None and _is_known_outside(own, blocks) else None
                found[axis] = max(shapes[0][axis], shapes[1][axis], LEAST_CAPACITY), shared
            self._open.append(found)

    def yielded(self, number: int) -> list[SSAValue]:
        """What a branch gives: its results, then their lengths. Adds operations to its block."""
        node, values, counts = self._node, list[SSAValue](), list[SSAValue]()
        with reopened(node, self._blocks[number]):
            for value, axes in zip(self._results[number], self._open, strict=True):
                lengths = lengths_along(node, value)
                for axis, (capacity, shared) in axes.items():
                    value = fitted(node, value, axis, capacity)
                    if shared is None:
                        counts.append(emitted_length(node, lengths[axis]))
                values.append(value)
        return [*values, *counts]

    def marked(self, results: Sequence[SSAValue]) -> list[SSAValue]:
        """The results of both branches, with their lengths."""
        program = self._node.program
        count = iter(results[len(self._open) :])
        found: list[SSAValue] = []
        for value, axes in zip(results, self._open, strict=False):
            sizes = {
                axis: as_length(number_in(program, next(count), 0, capacity))
                if shared is None
                else shared
                for axis, (capacity, shared) in axes.items()
            }
            found.append(mark(self._node, value, sizes))
        return found


class Opened(Exception):
    """An axis of a carried value has a length that changes from iteration to iteration."""

    def __init__(self, index: int, axis: int) -> None:
        self.index, self.axis = index, axis


class GrowsError(Exception):
    """A carried value has another type after an iteration.

    Attributes:
        index: of the value.
    """

    def __init__(self, index: int) -> None:
        self.index = index


class CarriedValues:
    """The values that a loop carries, each with a number for each axis that has padding."""

    def __init__(self, node: NodeBuilder, initial: Sequence[SSAValue]) -> None:
        self._node = node
        self._initial = list(initial)
        self._lengths = [lengths_along(node, value) for value in initial]
        self._axes = [sorted(sizes_of(node, value)) for value in initial]

    def open(self, index: int, axis: int) -> None:
        """Let an axis have padding."""
        value = self._initial[index]
        size = max(nn.shape_of(value)[axis], LEAST_CAPACITY)
        self._initial[index] = fitted(self._node, value, axis, size)
        self._axes[index] = sorted({*self._axes[index], axis})

    @property
    def before(self) -> list[SSAValue]:
        """The values before the first iteration, and then their lengths."""
        counts = [
            emitted_length(self._node, self._lengths[i][axis])
            for i, axes in enumerate(self._axes)
            for axis in axes
        ]
        return [*self._initial, *counts]

    def marked(self, given: Sequence[SSAValue]) -> list[SSAValue]:
        """The values, from values and lengths that a block or a loop gives."""
        node, count = self._node, iter(given[len(self._initial) :])
        found: list[SSAValue] = []
        for value, axes in zip(given, self._axes, strict=False):
            sizes = {
                axis: as_length(number_in(node.program, next(count), 0, nn.shape_of(value)[axis]))
                for axis in axes
            }
            found.append(mark(node, value, sizes))
        return found

    def after(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        """The values after an iteration, of the types before it, and then their lengths.

        Raises Opened and GrowsError.
        """
        node, kept, counts = self._node, list[SSAValue](), list[SSAValue]()
        for i, (value, before) in enumerate(zip(values, self._initial, strict=True)):
            wanted, lengths = nn.shape_of(before), lengths_along(node, value)
            other = nn.element_of(value) != nn.element_of(before) or len(lengths) != len(wanted)
            if other:
                raise GrowsError(i)
            for axis, size in enumerate(wanted):
                if axis in self._axes[i]:
                    if nn.shape_of(value)[axis] > size:
                        raise GrowsError(i)
                    value = fitted(node, value, axis, size)
                    counts.append(emitted_length(node, lengths[axis]))
                elif isinstance(lengths[axis], Length) and nn.shape_of(value)[axis] <= max(
                    size, LEAST_CAPACITY
                ):
                    raise Opened(i, axis)
                elif lengths[axis] != size:
                    raise GrowsError(i)
            kept.append(value)
        return [*kept, *counts]


def opening(carried: CarriedValues, build: Callable[[], T]) -> T:
    """What a function builds, once all axes with padding are known."""
    while True:
        try:
            return build()
        except Opened as found:
            carried.open(found.index, found.axis)
