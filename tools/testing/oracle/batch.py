"""A batch: an axis of a program's operands along which nothing that it computes is mixed.

That an axis is one follows from access maps, from one operation to the next: the same parallel
dimension, alone and whole, in every operand that has it and in the result. Such a program can be
cut in two, each with its part of every operand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import cast

from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from ....dialects import nn
from ....dialects.blob_attr import BlobAttr
from ....dialects.host import host_names
from ....dialects.nn.base import integers
from ....dialects.structured import Composite, Movement, Reinterpretation, Structured
from ....ir.geometry.space import AccessMap
from ....ir.rules.build import Infers
from ....ir.upstream import VerifyException
from ....ir.verify import verify
from ....passes.decompose import Decompose
from ..generators.program import Program

Axes = dict[SSAValue, int]
"""The axis of each value that has the batch."""


class NoBatch(Exception):
    """A program mixes what is on an axis, or cannot be cut there."""


@dataclass(frozen=True)
class Batch:
    """Where a program has a batch.

    size: of the axis. arguments: by number, the axis. states, by name; constants, by number in the
    order of the program. outputs: the axis of each, None for those that have no batch. results: of
    operations, by number in the function, the axis, None for none; composites are left out.
    """

    size: int
    arguments: dict[int, int]
    states: dict[str, int]
    constants: dict[int, int]
    outputs: tuple[int | None, ...]
    results: dict[int, int | None]


def main_of(module: ModuleOp) -> FuncOp:
    """The function that a run begins with."""
    return next(
        op for op in module.body.block.ops if isinstance(op, FuncOp) and op.sym_name.data == "main"
    )


def constants_of(module: ModuleOp) -> list[nn.ConstantOp]:
    """The constants of a module, in order."""
    return [op for op in module.walk() if isinstance(op, nn.ConstantOp)]


def batches(program: Program) -> Iterator[Batch]:
    """Every batch of a program of nn that begins with an argument and reaches a result."""
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


class _Wanted(Exception):
    """A leaf would have to be cut as well."""

    def __init__(self, leaf: SSAValue, axis: int) -> None:
        super().__init__()
        self.leaf = leaf
        self.axis = axis


@dataclass
class _Search:
    """Which leaves a batch has beside the one it begins with."""

    block: Block
    size: int
    ops: dict[Operation, int]
    constants: dict[SSAValue, int]
    stored: set[str]
    cut: Axes

    def run(self) -> Batch:
        """Cut more leaves until no operation asks for another. Raises NoBatch."""
        while True:
            try:
                axes = self._through()
            except _Wanted as wanted:
                self._add(wanted.leaf, wanted.axis)
                continue
            return self._found(axes)

    def _add(self, leaf: SSAValue, axis: int) -> None:
        owner = leaf.owner
        known = isinstance(owner, Block) or leaf in self.constants
        loaded = isinstance(owner, nn.LoadOp) and owner.state.string_value() not in self.stored
        if leaf in self.cut or not (known or loaded) or 0 in nn.shape_of(leaf):
            raise NoBatch
        self.cut[leaf] = axis

    def _found(self, axes: Axes) -> Batch:
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

    def _through(self) -> Axes:
        """The batch axis of every value, from the leaves that are cut. Raises _Wanted, NoBatch."""
        axes = dict(self.cut)
        for op in self.block.ops:
            read = {v for each in op.walk() for v in each.operands}
            if isinstance(op, ReturnOp) or not any(v in axes for v in read):
                continue
            if op.regions or not op.results:
                raise NoBatch
            if isinstance(op, Structured):
                axes[op.results[0]] = self._structured(op, op.structure().space.operands, axes)
            elif isinstance(op, Movement):
                axes[op.results[0]] = self._moved(op, axes)
            elif isinstance(op, Reinterpretation):
                shape = nn.shape_of(op.results[0])
                axes[op.results[0]] = _same_axis(
                    nn.shape_of(op.operands[0]), axes[op.operands[0]], shape
                )
            else:
                raise NoBatch
        return axes

    def _structured(self, op: Operation, maps: Sequence[AccessMap], axes: Axes) -> int:
        assert isinstance(op, Structured)
        space = op.structure().space
        given = [
            (v, _viewed(v, axes[v], access), access)
            for v, access in zip(op.operands, maps, strict=True)
            if v in axes
        ]
        dims = {self._dim_of(access, axis) for _, axis, access in given}
        if len(dims) != 1:
            raise NoBatch
        (d,) = dims
        if space.dims[d].kind != "parallel" or space.dims[d].size != self.size:
            raise NoBatch
        for value, access in zip(op.operands, maps, strict=True):
            if d in access.dims() and value not in axes:
                axis = self._axis_of(access, d)
                raise _Wanted(value, _same_axis(access.shape, axis, nn.shape_of(value)))
        result = space.results[0]
        return _same_axis(result.shape, self._axis_of(result, d), nn.shape_of(op.results[0]))

    def _moved(self, op: Operation, axes: Axes) -> int:
        assert isinstance(op, Movement)
        found: set[int] = set()
        moves = op.moves()
        for value, move in zip(op.operands, moves, strict=True):
            if value in axes:
                (source,), (target,) = move.operands, move.results
                d = self._dim_of(source, _viewed(value, axes[value], source))
                found.add(self._axis_of(target, d))
        if len(found) != 1:
            raise NoBatch
        (axis,) = found
        for value, move in zip(op.operands, moves, strict=True):
            (source,), (target,) = move.operands, move.results
            d = self._dim_of(target, axis)
            if value not in axes and d in source.dims():
                wanted = self._axis_of(source, d)
                raise _Wanted(value, _same_axis(source.shape, wanted, nn.shape_of(value)))
        return _same_axis(moves[0].results[0].shape, axis, nn.shape_of(op.results[0]))

    def _dim_of(self, access: AccessMap, axis: int) -> int:
        """The dimension that an axis is, alone and whole."""
        terms = access.axes[axis].terms
        if len(terms) != 1 or self._axis_of(access, terms[0][0]) != axis:
            raise NoBatch
        return terms[0][0]

    def _axis_of(self, access: AccessMap, d: int) -> int:
        """The one axis that a dimension is, alone and whole."""
        having = [i for i, a in enumerate(access.axes) if any(e == d for e, _ in a.terms)]
        if len(having) != 1:
            raise NoBatch
        axis = access.axes[having[0]]
        if axis.terms != ((d, 1),) or (axis.offset, axis.divisor, axis.size) != (0, 1, self.size):
            raise NoBatch
        return having[0]


def _viewed(value: SSAValue, axis: int, access: AccessMap) -> int:
    return _same_axis(nn.shape_of(value), axis, access.shape)


def _same_axis(shape: Sequence[int], axis: int, other: Sequence[int]) -> int:
    """The axis of another shape of the same elements that is the same one. Raises NoBatch."""
    before = prod(shape[:axis])
    for i, n in enumerate(other):
        if n == shape[axis] and prod(other[:i]) == before:
            return i
    raise NoBatch


# Cutting


def part(program: Program, batch: Batch, low: int, high: int) -> Program:
    """A program for the elements low to high of a batch. Raises NoBatch.

    Sizes that are written in attributes follow those of the operands, where only one does.
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
            _infer(op, batch.size, new, wanted if i in batch.results else None)
    main.update_function_type()
    _check(program, module, batch, new)
    return Program(module, program.context, inputs, program.target)


def _retype(result: OpResult, type_: Attribute) -> None:
    result._type = type_  # pyright: ignore[reportPrivateUsage]


def _infer(op: Operation, old: int, new: int, wanted: Attribute | None) -> None:
    """Give a result the type that follows from operands, perhaps with one size in an attribute
    changed as theirs were. wanted: that type, if it is known."""
    assert isinstance(op, Infers)
    before, problem = dict(op.properties), None
    for properties in (before, *_resized(before, old, new)):
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


def _resized(
    properties: dict[str, Attribute], old: int, new: int
) -> Iterator[dict[str, Attribute]]:
    for name, value in properties.items():
        if isinstance(value, DenseArrayBase):
            numbers = list(value.get_values())
            for i, number in enumerate(numbers):
                if number == old:
                    changed = [*numbers[:i], new, *numbers[i + 1 :]]
                    yield {**properties, name: integers(changed)}


def _check(program: Program, module: ModuleOp, batch: Batch, new: int) -> None:
    """Raise NoBatch unless the results are those that the batch says."""
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
