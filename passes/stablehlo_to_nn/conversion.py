"""The program of nn that is made from one of stablehlo: its values, and what is known of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.traits import Pure

from ...backends.reference import KnownValues
from ...dialects import nn, stablehlo
from ...dialects.dtypes import STORED, numpy_dtype
from ...dialects.source_types import is_complex
from ...ir.conversion import Conversion, Patterns
from ...ir.provenance import at, is_known, origin, place
from ...ir.support.errors import InputError
from ...ir.support.limits import INLINED_NODES, NESTED_CALLS
from ...ir.upstream import LocationAttr, VerifyException

MOST_KNOWN = 1 << 16
"""The most elements of a value that is computed while a program is converted."""

Lower = Callable[[Any, "ToNn"], Sequence[SSAValue]]
"""Adds operations of nn that compute the results of an operation, and returns these."""

Op = TypeVar("Op", bound=Operation)

ToNnArray = NDArray[Any]

ADVICE = "--list-ops shows all operations"
"""What a message about an operation that is not supported ends with."""


class Unsupported(InputError, NotImplementedError):
    """The program is valid, but nothing replaces an operation of it.

    Attributes:
        why: the part of the operation that is not supported, and what is supported instead; "" if
            abele does not lower the operation at all.
        told: the operation and its place, with the reason.
    """

    def __init__(self, message: str, told: str = "", why: str = "") -> None:
        super().__init__(message)
        self.told = told
        self.why = why


class ToNn(Conversion):
    """A program of nn, while it is made from one of stablehlo.

    Attributes:
        table: what lowers each operation, by name.
        functions: the functions of the program, by name.
        on_elements: the operations that a region on single elements may have, because they may be
            lowered for tensors of any shape.
        values: the values of nn that values of stablehlo have become.
        spread: for a tensor that was made by repeating another one along axes, that other one, and
            the axis of the result for each of its axes.
        whole: for a reduced tensor, the same reduction with the reduced axes kept, of one element.
        ranges: the least and the largest number of iteration numbers of loops.
        refused: the operations that nothing replaces, and why.
        outermost: the block of @main, once it is being lowered.
        random: the seed of the program and the number of the run, by the names of their states, if
            numbers are drawn.
        draws: how many operations have drawn numbers.
    """

    def __init__(
        self,
        table: Mapping[str, Lower],
        functions: Mapping[str, func.FuncOp],
        on_elements: Collection[str] = (),
    ) -> None:
        super().__init__(Patterns(), "nn")
        self.table = table
        self.on_elements = on_elements
        self.functions = functions
        self.values: dict[SSAValue, SSAValue] = {}
        self.ranges: dict[SSAValue, tuple[int, int]] = {}
        self.refused: list[tuple[Operation, Unsupported]] = []
        self.outermost: Block | None = None
        self.random: dict[str, SSAValue] = {}
        self.draws = 0
        self.spread: dict[SSAValue, tuple[SSAValue, tuple[int, ...]]] = {}
        self.whole: dict[SSAValue, SSAValue] = {}
        self._known = KnownValues(MOST_KNOWN)
        self._constants: dict[tuple[Block, bytes, str, tuple[int, ...]], SSAValue] = {}
        self._equal: dict[tuple[object, ...], SSAValue] = {}
        self._added: list[Operation] = []
        self._calls: list[str] = []
        self._around: LocationAttr | None = None
        self._count = 0
        self._stretched = 0

    # Values

    def value(self, old: SSAValue) -> SSAValue:
        """The value of nn that a value of stablehlo has become."""
        return self.values[old]

    def operands(self, op: Operation) -> list[SSAValue]:
        """The values of nn that the operands of an operation have become."""
        return [self.values[each] for each in op.operands]

    def known(self, value: SSAValue) -> ToNnArray | None:
        """The array of a value of nn that follows from constants alone, if it is small; else None.

        The values of floats may be rounded otherwise on the machine, so use them only where that
        does not matter.
        """
        return self._known.array(value)

    # Building

    def add(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, op: Operation, *path: str
    ) -> SSAValue:
        """Add an operation, and return its first result.

        Of the operations that are added for one of stablehlo, the one that makes its first result
        gets its name, and the others get names below it. If the block has an equal operation
        already, its result is returned instead.
        """
        if len(op.results) == 1 and not op.regions and op.has_trait(Pure):
            parts = op.name, op.operands, frozenset(op.properties.items()), op.results[0].type
            found = self._equal.setdefault((self.block, *parts), op.results[0])
            if found is not op.results[0]:
                op.erase()
                return found
        self.block.add_op(op)
        self._added.append(op)
        return op.results[0] if op.results else cast("Any", None)

    def add_control(self, op: Operation) -> list[SSAValue]:
        """Add an operation with regions, and return its results."""
        self.add(op)
        return list(op.results)

    def add_several(self, op: Operation) -> list[SSAValue]:
        """Add an operation, and return all its results."""
        self.add(op)
        return list(op.results)

    def constant(self, array: Any, dtype: Any = None) -> SSAValue:
        """An array as a constant. Equal small ones of a block are one."""
        found = np.asarray(array, dtype)
        if found.size > 1:
            return self.add(nn.ConstantOp(found))
        key = (self.block, found.tobytes(), found.dtype.name, found.shape)
        if key not in self._constants:
            self._constants[key] = self.add(nn.ConstantOp(found))
        return self._constants[key]

    def number(self, value: float, like: SSAValue) -> SSAValue:
        """A constant without axes. Whole numbers wrap.

        Args:
            like: a value of nn of the same element type.
        """
        return self.constant(np.asarray(value).astype(numpy_dtype(nn.element_of(like))))

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """A value of nn in another shape. Of two reshapes, one after another, one is left."""
        if isinstance(value, OpResult) and isinstance(value.op, nn.ReshapeOp):
            value = value.op.operands[0]
        if nn.shape_of(value) == tuple(shape):
            return value
        return self.add(nn.ReshapeOp(value, shape))

    def expand(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """A value of nn repeated to a shape that it broadcasts to."""
        own = nn.shape_of(value)
        if isinstance(value, OpResult) and isinstance(value.op, nn.ReshapeOp):
            # Axes of one element in front are there without being written.
            front = next((i for i, n in enumerate(own) if n != 1), len(own))
            value = self.reshape(value, own[front:])
        if nn.shape_of(value) == tuple(shape):
            return value
        return self.add(nn.ExpandOp(value, shape))

    def transpose(self, value: SSAValue, order: Sequence[int]) -> SSAValue:
        """A value of nn with its axes in another order."""
        if tuple(order) == tuple(range(len(order))):
            return value
        return self.add(nn.TransposeOp(value, order))

    def cast(self, value: SSAValue, element: Attribute) -> SSAValue:
        """A value of nn in another element type."""
        return value if nn.element_of(value) == element else self.add(nn.CastOp(value, element))

    def bits(self, value: SSAValue, element: Attribute) -> SSAValue:
        """The bits of a value of nn as another element type."""
        return value if nn.element_of(value) == element else self.add(nn.BitCastOp(value, element))

    def box(self, value: SSAValue, starts: Sequence[int], sizes: Sequence[int]) -> SSAValue:
        """Neighbouring elements of a value of nn."""
        if nn.shape_of(value) == tuple(sizes):
            return value
        return self.add(nn.SliceOp(value, starts, [1] * len(starts), sizes))

    def select(self, condition: SSAValue, then: SSAValue, otherwise: SSAValue) -> SSAValue:
        """The one value of nn where a condition holds, the other elsewhere."""
        return self.add(nn.SelectOp(condition, then, otherwise))

    def wide(self, value: SSAValue) -> SSAValue:
        """A value of nn for several steps with floats: f32 if its elements are narrower."""
        return self.cast(value, nn.wide_element(nn.element_of(value)))

    # Errors

    def bad(self, why: str) -> InputError:
        """An error in the operation that is lowered, to raise."""
        assert self.source is not None
        return InputError(f"{_where(self.source)}: {why}")

    def unsupported(self, what: str, supported: str) -> Unsupported:
        """An error for a valid operation that abele does not lower, to raise.

        Args:
            what: what the operation uses.
            supported: what is supported instead.
        """
        assert self.source is not None
        where, why = _where(self.source), f"{what} is not supported; {supported}"
        return Unsupported(f"{where}: {why}", f"{where} ({why})", why)

    # Walking

    def convert(self, op: Operation) -> None:
        """Lower one operation."""
        outer, added = self.source, self._added
        self.source, self._added = op, []
        self._count += 1
        if self._count > INLINED_NODES.most:
            raise self.bad(INLINED_NODES.refusal("functions with all that they call"))
        lower = self.table.get(op.name)
        try:
            if any(map(is_complex, (*op.operands, *op.results))):
                lower = _complex
            if lower is None:
                where = _where(op)
                raise Unsupported(f"{where}: it is not supported; {ADVICE}", where)
            results = lower(op, self)
            self._check_stored()
        except Unsupported as error:
            # Go on, so that the message lists all of them. Nobody sees the values.
            self.refused.append((op, error))
            results = Block(arg_types=[each.type for each in op.results]).args
        except InputError:
            raise
        except (VerifyException, ValueError, TypeError, IndexError, OverflowError) as error:
            raise self.bad(str(error)) from error
        self._become(op, results)
        self._locate(results)
        self.source, self._added = outer, added

    def _check_stored(self) -> None:
        """Raise Unsupported if what was added computes with elements that are only stored."""
        for op in self._added:
            if any(nn.element_of(each) in STORED for each in tensors(op.operands)):
                try:
                    op.verify_()
                except VerifyException as error:
                    raise self.unsupported("the element type", str(error)) from None

    def _become(self, op: Operation, results: Sequence[SSAValue]) -> None:
        if len(results) != len(op.results):
            raise AssertionError(f"{op.name}: {len(results)} results of {len(op.results)}")
        for old, new in zip(op.results, results, strict=True):
            if new.type != old.type and not self._stretched:
                raise AssertionError(f"{op.name}: lowered to {new.type}; need {old.type}")
            self.values[old] = new

    def _locate(self, results: Sequence[SSAValue]) -> None:
        """Give the operations that were added for an operation their names."""
        assert self.source is not None
        location = self._location(self.source)
        first, taken = results[0] if results else None, dict[str, int]()
        for op in self._added:
            if is_known(op.location):
                continue
            if first in op.results:
                op.location = location
            else:
                step = op.name.rpartition(".")[2]
                taken[step] = taken.get(step, -1) + 1
                op.location = at(location, f"{step}_{taken[step]}" if taken[step] else step)

    def _location(self, op: Operation) -> LocationAttr:
        """The location of an operation, below that of the call that leads to it."""
        name = origin(op)
        if self._around is None or name is None:
            return op.location
        return at(self._around, name)

    def lower_block(self, block: Block, arguments: Sequence[SSAValue]) -> list[SSAValue]:
        """Lower the operations of a block into the present one.

        Returns the values of nn that the operands of its last operation have become.

        Args:
            arguments: what the block's arguments are, in nn.
        """
        for old, new in zip(block.args, arguments, strict=True):
            self.values[old] = new
        end = block.last_op
        assert end is not None
        for op in block.ops:
            if op is not end:
                self.convert(op)
        return [self.values[each] for each in end.operands]

    def applied(self, region: Region, arguments: Sequence[SSAValue]) -> list[SSAValue]:
        """Apply a region on single elements to all elements of tensors.

        Returns one value of nn for each result of the region.

        Args:
            arguments: values of nn, whose shapes broadcast with each other.
        """
        for op in region.block.ops:
            if op.name not in self.on_elements:
                raise self.unsupported(f"{op.name} in a region", "functions of elements are")
        self._stretched += 1
        try:
            return self.lower_block(region.block, arguments)
        finally:
            self._stretched -= 1

    def tried(self, region: Region, arguments: Sequence[ToNnArray]) -> list[ToNnArray]:
        """Apply a region on single elements to all elements of arrays.

        Returns one array for each result of the region.
        """
        with self.into(Block()):
            given = [self.add(nn.ConstantOp(each)) for each in arguments]
            added, self._added = self._added, []
            found = [self.known(each) for each in self.applied(region, given)]
            self._added = added
        shape = np.broadcast_shapes(*(each.shape for each in arguments))
        return [np.broadcast_to(each, shape) for each in found if each is not None]

    def region(self, old: Region, types: Sequence[Attribute] | None = None) -> RegionInProgress:
        """A region of nn whose block takes values of the types of another region's arguments.

        Args:
            types: other types for them.
        """
        found = [each.type for each in old.block.args] if types is None else types
        return RegionInProgress(self, old, Block(arg_types=found))

    @contextmanager
    def called(self, name: str) -> Generator[func.FuncOp]:
        """A function, while the operations of its body are lowered into the present block.

        Raises InputError for a function that calls itself, or that does not exist.
        """
        assert self.source is not None
        found = self.functions.get(name)
        if found is None or not found.body.blocks:
            raise self.bad(f"no function @{name}")
        if name in self._calls:
            raise self.bad(f"@{name} calls itself")
        if len(self._calls) >= NESTED_CALLS.most:
            raise self.bad(NESTED_CALLS.refusal(f"@{name}"))
        around = self._around
        self._around = self._location(self.source)
        self._calls.append(name)
        try:
            yield found
        finally:
            self._calls.pop()
            self._around = around


def _complex(op: Operation, new: ToNn) -> Sequence[SSAValue]:
    """An operation on complex numbers that has not become one on their parts."""
    if isinstance(op, stablehlo.ComplexOp | stablehlo.RealOp | stablehlo.ImagOp):
        # It stands beside such an operation, which the message names.
        return Block(arg_types=[each.type for each in op.results]).args
    raise new.unsupported("a complex number", "floats are")


class RegionInProgress:
    """A region of nn that is made from one of stablehlo.

    Attributes:
        block: its block.
    """

    def __init__(self, new: ToNn, old: Region, block: Block) -> None:
        self._new = new
        self._old = old
        self.block = block

    def filled(
        self,
        end: Callable[[list[SSAValue]], Operation],
        arguments: Callable[[Sequence[SSAValue]], Sequence[SSAValue]] = list,
    ) -> Region:
        """The region, whose block ends with an operation on what the old one returns.

        Args:
            end: makes the operation.
            arguments: what the old block's arguments are, from those of the new one.
        """
        new = self._new
        with new.into(self.block):
            values = new.lower_block(self._old.block, arguments(self.block.args))
            self.block.add_op(end(values))
        return Region(self.block)


def source_of(value: SSAValue) -> SSAValue:
    """The value of nn that a value only repeats, or has in another shape."""
    while isinstance(value, OpResult) and isinstance(value.op, nn.ExpandOp | nn.ReshapeOp):
        value = value.op.operands[0]
    return value


def splat_of(value: SSAValue) -> float | None:
    """The number that is every element of a value of nn; None if no such number is known.

    It is exact: integers are Python's.
    """
    source = source_of(value)
    if not isinstance(source, OpResult) or not isinstance(source.op, nn.ConstantOp):
        return None
    array = source.op.value.array
    if not array.size or (array.size > 1 and any(array.strides)):
        return None
    return cast("float", array[(0,) * array.ndim].item())


def _where(op: Operation) -> str:
    """An operation in messages."""
    return f"{op.name} at {place(op)}"


def tensors(values: Sequence[SSAValue]) -> Iterator[TensorType[Attribute]]:
    """The types of values that are tensors."""
    for each in values:
        assert isinstance(each.type, TensorType)
        yield cast("TensorType[Attribute]", each.type)
