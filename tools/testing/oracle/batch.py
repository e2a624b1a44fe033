"""Batches: axes along which every element of a program is computed independently.

Access maps show whether an axis is a batch, operation by operation. In every operand that has the
axis, and in the result, the axis must be the same parallel dimension: the whole dimension, and no
other dimension with it. A program with a batch can be cut into two programs, each for a range of
the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import cast

from xdsl.dialects.builtin import DenseArrayBase, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from ....dialects import nn
from ....dialects.blob_attr import BlobAttr
from ....dialects.host import host_names
from ....dialects.nn.base import integers
from ....dialects.structured import Composite, Movement, Reinterpretation, Structured
from ....ir.geometry.space import AccessMap
from ....ir.rules.build import Infers
from ....ir.upstream import ModuleOp, VerifyException
from ....ir.verify import verify
from ....ir.well_known import ENTRY
from ....passes.decompose import Decompose
from ..generators.program import Program

Axes = dict[SSAValue, int]
"""The batch axis of each value that has the batch."""


class NoBatch(Exception):
    """Raised if a program mixes elements along an axis or cannot be cut along it."""


@dataclass(frozen=True)
class Batch:
    """The batch axis of each value of a program.

    Composites are left out.

    Attributes:
        size: elements along the axis.
        arguments: the axis of each argument that has the batch, by argument number.
        states: the axis of each state that has the batch, by name.
        constants: the axis of each constant that has the batch, by number in the order of the
            program.
        outputs: the axis of each output; None if it does not have the batch.
        results: the axis of each operation's first result, by the operation's number in the
            function; None if it does not have the batch.
    """

    size: int
    arguments: dict[int, int]
    states: dict[str, int]
    constants: dict[int, int]
    outputs: tuple[int | None, ...]
    results: dict[int, int | None]


def main_of(module: ModuleOp) -> FuncOp:
    """The function `main` of a module, where a run begins."""
    return next(
        op for op in module.body.block.ops if isinstance(op, FuncOp) and op.sym_name.data == ENTRY
    )


def constants_of(module: ModuleOp) -> list[nn.ConstantOp]:
    """The constants of a module, in order."""
    return [op for op in module.walk() if isinstance(op, nn.ConstantOp)]


def batches(program: Program) -> Iterator[Batch]:
    """Every batch of an nn program that contains an argument and a result."""
    module = program.module.clone()
    constants: dict[SSAValue, int] = {op.result: i for i, op in enumerate(constants_of(module))}
    main = main_of(module)
    ops = {op: i for i, op in enumerate(main.body.block.ops) if not isinstance(op, Composite)}
    Decompose().apply(program.context, module)
    stored = {op.state.string_value() for op in module.walk() if isinstance(op, nn.StoreOp)}
    for argument in main.body.block.args:
        shape = nn.shape_of(argument)
        for axis, size in enumerate(shape):
            if size < 2 or 0 in shape:
                continue
            try:
                found = _Search(
                    main.body.block, size, ops, constants, stored, {argument: axis}
                ).run()
            except NoBatch:
                continue
            if any(each is not None for each in found.outputs):
                yield found


class _LeafMustBeCut(Exception):
    """Raised for an operation that can only be cut if one more leaf is cut along an axis.

    A leaf is an argument, a constant or a loaded state.
    """

    def __init__(self, leaf: SSAValue, axis: int) -> None:
        super().__init__()
        self.leaf = leaf
        self.axis = axis


@dataclass
class _Search:
    """Finds all leaves that must be cut along a batch, starting from one leaf.

    Attributes:
        size: elements of the batch.
        ops: the numbers of the operations whose axes are recorded.
        constants: the numbers of the constants.
        stored: the states that the program writes.
        cut: the axis along which each leaf is cut.
    """

    block: Block
    size: int
    ops: dict[Operation, int]
    constants: dict[SSAValue, int]
    stored: set[str]
    cut: Axes

    def run(self) -> Batch:
        """Cut leaves until every operation can be cut. Raises NoBatch."""
        while True:
            try:
                axes = self._propagate()
            except _LeafMustBeCut as needed:
                self._cut_leaf(needed.leaf, needed.axis)
                continue
            return self._batch(axes)

    def _cut_leaf(self, leaf: SSAValue, axis: int) -> None:
        """Cut a leaf along an axis.

        Raises NoBatch if the value is not a leaf, is cut already or is empty.
        """
        owner = leaf.owner
        known = isinstance(owner, Block) or leaf in self.constants
        loaded = isinstance(owner, nn.LoadOp) and owner.state.string_value() not in self.stored
        if leaf in self.cut or not (known or loaded) or 0 in nn.shape_of(leaf):
            raise NoBatch
        self.cut[leaf] = axis

    def _batch(self, axes: Axes) -> Batch:
        """The batch, made from the axes of all values.

        Raises NoBatch if loads of a state disagree.
        """
        arguments = {a.index: self.cut[a] for a in self.block.args if a in self.cut}
        states: dict[str, int] = {}
        for op in self.block.ops:
            if isinstance(op, nn.LoadOp):
                name = op.state.string_value()
                axis = self.cut.get(op.result)
                if states.setdefault(name, -1 if axis is None else axis) != (
                    -1 if axis is None else axis
                ):
                    raise NoBatch
        last = self.block.last_op
        assert isinstance(last, ReturnOp)
        return Batch(
            self.size,
            arguments,
            {name: axis for name, axis in states.items() if axis >= 0},
            {self.constants[v]: axis for v, axis in self.cut.items() if v in self.constants},
            tuple(axes.get(v) for v in last.operands),
            {number: axes.get(op.results[0]) for op, number in self.ops.items() if op.results},
        )

    def _propagate(self) -> Axes:
        """The batch axis of every value, propagated from the leaves that are cut.

        Raises _LeafMustBeCut and NoBatch.
        """
        axes = dict(self.cut)
        for op in self.block.ops:
            read = {v for each in op.walk() for v in each.operands}
            if isinstance(op, ReturnOp) or not any(v in axes for v in read):
                continue
            if op.regions or len(op.results) != 1:
                raise NoBatch
            if isinstance(op, Structured):
                maps = op.structure().space.operands
                axes[op.results[0]] = self._structured_axis(op, maps, axes)
            elif isinstance(op, Movement):
                axes[op.results[0]] = self._movement_axis(op, axes)
            elif isinstance(op, Reinterpretation):
                shape = nn.shape_of(op.results[0])
                axes[op.results[0]] = _same_axis(
                    nn.shape_of(op.operands[0]), axes[op.operands[0]], shape
                )
            else:
                raise NoBatch
        return axes

    def _structured_axis(self, op: Operation, maps: Sequence[AccessMap], axes: Axes) -> int:
        """The batch axis of the result of a structured operation."""
        assert isinstance(op, Structured)
        space = op.structure().space
        given = [
            (v, _axis_in_view(v, axes[v], access), access)
            for v, access in zip(op.operands, maps, strict=True)
            if v in axes
        ]
        dims = {self._dim_of(access, axis) for _, axis, access in given}
        if len(dims) != 1:
            raise NoBatch
        (d,) = dims
        if space.dims[d].kind != "parallel" or space.dims[d].size != self.size:
            raise NoBatch
        if any(d == e for relation in space.relations for e, _ in relation.axis.terms):
            # Indices name rows of the whole batch.
            raise NoBatch
        for value, access in zip(op.operands, maps, strict=True):
            if d in access.dims() and value not in axes:
                axis = self._axis_of(access, d)
                raise _LeafMustBeCut(value, _same_axis(access.shape, axis, nn.shape_of(value)))
        result = space.results[0]
        return _same_axis(result.shape, self._axis_of(result, d), nn.shape_of(op.results[0]))

    def _movement_axis(self, op: Operation, axes: Axes) -> int:
        """The batch axis of the result of a movement."""
        assert isinstance(op, Movement)
        found: set[int] = set()
        moves = op.moves()
        for value, move in zip(op.operands, moves, strict=True):
            if value in axes:
                (source,), (target,) = move.operands, move.results
                d = self._dim_of(source, _axis_in_view(value, axes[value], source))
                found.add(self._axis_of(target, d))
        if len(found) != 1:
            raise NoBatch
        (axis,) = found
        for value, move in zip(op.operands, moves, strict=True):
            (source,), (target,) = move.operands, move.results
            d = self._dim_of(target, axis)
            if value not in axes and d in source.dims():
                needed = self._axis_of(source, d)
                raise _LeafMustBeCut(value, _same_axis(source.shape, needed, nn.shape_of(value)))
        return _same_axis(moves[0].results[0].shape, axis, nn.shape_of(op.results[0]))

    def _dim_of(self, access: AccessMap, axis: int) -> int:
        """The dimension that an axis covers completely and alone. Raises NoBatch."""
        terms = access.axes[axis].terms
        if len(terms) != 1 or self._axis_of(access, terms[0][0]) != axis:
            raise NoBatch
        return terms[0][0]

    def _axis_of(self, access: AccessMap, d: int) -> int:
        """The axis that covers a dimension completely and alone. Raises NoBatch."""
        having = [i for i, a in enumerate(access.axes) if any(e == d for e, _ in a.terms)]
        if len(having) != 1:
            raise NoBatch
        axis = access.axes[having[0]]
        if axis.terms != ((d, 1),) or (axis.offset, axis.divisor, axis.size) != (0, 1, self.size):
            raise NoBatch
        return having[0]


def _axis_in_view(value: SSAValue, axis: int, access: AccessMap) -> int:
    """The axis of an access map's view that corresponds to an axis of the value."""
    return _same_axis(nn.shape_of(value), axis, access.shape)


def _same_axis(shape: Sequence[int], axis: int, other: Sequence[int]) -> int:
    """The axis of a reshaped tensor that corresponds to an axis of the original.

    Raises NoBatch.
    """
    before = prod(shape[:axis])
    for i, n in enumerate(other):
        if n == shape[axis] and prod(other[:i]) == before:
            return i
    raise NoBatch


# Cutting


def batch_slice(program: Program, batch: Batch, low: int, high: int) -> Program:
    """The program for elements low to high - 1 of a batch. Raises NoBatch.

    An attribute that contains the size of the batch gets the new size if the inferred result type
    is then right. At most one number of each operation is changed.
    """
    module = program.module.clone()
    main = main_of(module)
    names = host_names(main, "arg_names", len(main.body.block.args))
    inputs = dict(program.inputs)
    new = high - low

    def cut(type_: Attribute, axis: int) -> Attribute:
        tensor = cast("TensorType[Attribute]", type_)
        shape = list(tensor.get_shape())
        shape[axis] = new
        return TensorType(tensor.element_type, shape)

    def cut_blob(op: Operation, axis: int) -> None:
        blob = op.properties["value"]
        assert isinstance(blob, BlobAttr)
        array = blob.array[(slice(None),) * axis + (slice(low, high),)]
        op.properties["value"] = BlobAttr(program.context.blobs.add(array.copy()))

    for i, axis in batch.arguments.items():
        argument = main.body.block.args[i]
        argument._type = cut(argument.type, axis)  # pyright: ignore[reportPrivateUsage]
        array = inputs[names[i]]
        inputs[names[i]] = array[(slice(None),) * axis + (slice(low, high),)].copy()
    for op in module.walk():
        name = op.state.string_value() if isinstance(op, nn.LoadOp) else ""
        if isinstance(op, nn.StateOp) and op.sym_name.data in batch.states:
            axis = batch.states[op.sym_name.data]
            op.properties["elements"] = cut(op.elements, axis)
            cut_blob(op, axis)
        elif name in batch.states:
            _retype(op.results[0], cut(op.results[0].type, batch.states[name]))
    for i, op in enumerate(constants_of(module)):
        if i in batch.constants:
            cut_blob(op, batch.constants[i])
            _retype(op.result, cut(op.result.type, batch.constants[i]))
    for i, op in enumerate(main.body.block.ops):
        if isinstance(op, Infers):
            axis, wanted = batch.results.get(i), op.results[0].type
            if axis is not None:
                wanted = cut(wanted, axis)
            _infer_result_type(op, batch.size, new, wanted if i in batch.results else None)
    main.update_function_type()
    _check_result_shapes(program, module, batch, new)
    return Program(module, program.context, inputs, program.target)


def _retype(result: OpResult, type_: Attribute) -> None:
    result._type = type_  # pyright: ignore[reportPrivateUsage]


def _infer_result_type(op: Operation, old: int, new: int, wanted: Attribute | None) -> None:
    """Set the type of a result to the type inferred from its operands. Raises NoBatch.

    Where inference fails, one number in an attribute is changed from old to new.

    Args:
        wanted: the required type, if it is known.
    """
    assert isinstance(op, Infers)
    before, problem = dict(op.properties), None
    for properties in (before, *_with_one_size_changed(before, old, new)):
        op.properties = dict(properties)
        try:
            found = op.infer()
        except (VerifyException, ValueError) as error:
            problem = error
            continue
        if wanted in (None, found):
            _retype(op.results[0], found)
            return
    raise NoBatch from problem


def _with_one_size_changed(
    properties: dict[str, Attribute], old: int, new: int
) -> Iterator[dict[str, Attribute]]:
    for name, value in properties.items():
        if isinstance(value, DenseArrayBase):
            numbers = list(value.get_values())
            for i, number in enumerate(numbers):
                if number == old:
                    changed = [*numbers[:i], new, *numbers[i + 1 :]]
                    yield {**properties, name: integers(changed)}


def _check_result_shapes(program: Program, module: ModuleOp, batch: Batch, new: int) -> None:
    """Raise NoBatch unless the module is valid and its results have the shapes of the slice."""
    try:
        verify(module)
    except VerifyException as error:
        raise NoBatch from error
    whole, own = (main_of(each).function_type.outputs.data for each in (program.module, module))
    for axis, old, found in zip(batch.outputs, whole, own, strict=True):
        wanted = list(nn.shape_of(old))
        if axis is not None:
            wanted[axis] = new
        if list(nn.shape_of(found)) != wanted:
            raise NoBatch
