"""Follows the samples of a batch through a program at nn: which dimension of an operation is the
batch.

A value *spans* samples along an axis: neighbours of the axis belong to one sample, or to samples
that follow each other. Reshapes may split or merge that axis, so a value may have several: samples
[4] are the first two axes of [2, 2, 8].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import prod

from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue, Use

from ...dialects import control, nn
from ...dialects.structured import Movement, Reinterpretation, Structured
from ...ir.geometry.overlap import linear_groups
from ...ir.geometry.space import AccessMap, Space
from ...ir.upstream import ModuleOp
from ...ir.well_known import ENTRY

ROUNDS = 2
"""The number of times that a loop's body is followed. What an iteration yields says what the next
one begins with."""


@dataclass(frozen=True)
class Samples:
    """An axis of a tensor, or a dimension of a space, that spans samples.

    Attributes:
        along: the number of the axis or dimension.
        count: how many samples lie along it.
    """

    along: int
    count: int


Spans = tuple[Samples, ...]
"""The axes that span samples, the most significant first."""


@dataclass
class Following:
    """The batch of every value and operation of a program.

    Attributes:
        values: the axes of each value that span samples.
        dims: the dimensions of each operation that span samples. Those that an index reaches are
            left out: a loop takes one micro-batch of a batch by its number.
    """

    module: ModuleOp
    values: dict[SSAValue, Spans] = field(default_factory=dict[SSAValue, Spans])
    dims: dict[Operation, Spans] = field(default_factory=dict[Operation, Spans])

    def __post_init__(self) -> None:
        self._functions = {
            op.sym_name.data: op
            for op in self.module.body.block.ops
            if isinstance(op, FuncOp) and op.body.blocks
        }
        # How many parameters of a function had samples when its body was last followed.
        self._followed: dict[Block, int] = {}

    def follow(self, inputs: Mapping[int, Sequence[int]]) -> Following:
        """Follow the batch from the inputs of the entry function.

        Args:
            inputs: for each argument that has samples, their axes, the first one first.
        """
        main = self._functions.get(ENTRY)
        if main is None:
            return self
        for i, axes in inputs.items():
            value = main.body.block.args[i]
            shape = nn.shape_of(value)
            self._set(value, tuple(Samples(axis, shape[axis]) for axis in axes))
        self._block(main.body.block)
        for op in reversed([*self.module.walk()]):
            self._back(op)
        return self

    def _set(self, value: SSAValue, spans: Spans) -> None:
        if spans:
            self.values.setdefault(value, spans)

    def _block(self, block: Block) -> None:
        for op in block.ops:
            match op:
                case control.RepeatOp() | control.WhileOp():
                    self._loop(op)
                case control.IfOp():
                    for region in (op.then, op.otherwise):
                        self._block(region.block)
                        self._join(op.outputs, _last(region.block).operands)
                case CallOp():
                    callee = self._functions.get(op.callee.string_value())
                    if callee is not None:
                        self._callee(callee.body.block, op.arguments)
                        end = _last(callee.body.block)
                        if isinstance(end, ReturnOp):
                            self._join(op.results, end.operands)
                case _:
                    self._operation(op)

    def _callee(self, block: Block, arguments: Sequence[SSAValue]) -> None:
        """Follow the batch through a function, unless an earlier call has said as much of it."""
        self._join(block.args, arguments)
        known = sum(value in self.values for value in block.args)
        if self._followed.get(block) != known:
            self._followed[block] = known
            self._block(block)

    def _join(self, new: Iterable[SSAValue], old: Iterable[SSAValue]) -> None:
        for value, source in zip(new, old, strict=False):
            self._set(value, self.values.get(source, ()))

    def _loop(self, op: control.RepeatOp | control.WhileOp) -> None:
        regions = (op.body,) if isinstance(op, control.RepeatOp) else (op.test, op.body)
        yielded = _last(regions[-1].block).operands
        for _ in range(ROUNDS):
            for region in regions:
                self._join(region.block.args, op.initial)
                self._block(region.block)
            for region in regions:
                self._join(region.block.args, yielded)
        for values in (yielded, op.initial):
            self._join(op.outputs, values)

    def _operation(self, op: Operation) -> None:
        if isinstance(op, Reinterpretation):
            spans = self.values.get(op.operands[0], ())
            shape, other = nn.shape_of(op.operands[0]), nn.shape_of(op.results[0])
            self._set(op.results[0], in_shape(spans, shape, other))
        elif isinstance(op, Movement):
            self._movement(op)
        elif isinstance(op, Structured):
            self._structured(op)

    def _movement(self, op: Operation) -> None:
        assert isinstance(op, Movement)
        for value, space in zip(op.operands, op.moves(), strict=False):
            spans = self.values.get(value, ())
            if not spans:
                continue
            dims = dims_along(spans, nn.shape_of(value), space.operands[0])
            found = axes_along(dims, space.results[0])
            # The plan of a movement cuts the axes of its result.
            if found:
                self.dims.setdefault(op, found)
                self._set(op.results[0], found)

    def _structured(self, op: Operation) -> None:
        assert isinstance(op, Structured)
        space = op.structure().space
        named = {d for relation in space.relations for d, _ in relation.axis.terms}
        found = self.dims.get(op, ())
        for value, access in zip(op.operands, space.operands, strict=True):
            spans = self.values.get(value, ())
            if found or not spans:
                continue
            dims = dims_along(spans, nn.shape_of(value), access)
            found = tuple(each for each in dims if each.along not in named)
        if not found:
            return
        self.dims[op] = found
        for value, access in zip(op.results, space.results, strict=True):
            axes = axes_along(found, access)
            self._set(value, in_shape(axes, access.shape, nn.shape_of(value)))

    # What is computed from no input: masks, zeros

    def _back(self, op: Operation) -> None:
        """Say what the result of an operation spans by what its readers do."""
        if not isinstance(op, Structured | Reinterpretation) or len(op.results) != 1:
            return
        assert isinstance(op, Operation)
        (value,) = op.results
        if value in self.values:
            return
        found = [spans for use in value.uses if (spans := self._read_as(use))]
        if not found:
            return
        spans = found[0]
        self._set(value, spans)
        if isinstance(op, Structured):
            dims = dims_along(spans, nn.shape_of(value), op.structure().space.results[0])
            if dims:
                self.dims.setdefault(op, dims)

    def _read_as(self, use: Use) -> Spans:
        """What a value spans where it is read."""
        op, index = use.operation, use.index
        shape = nn.shape_of(op.operands[index])
        if isinstance(op, control.RepeatOp):
            return self.values.get(op.body.block.args[index], ())
        if isinstance(op, Reinterpretation):
            spans = self.values.get(op.results[0], ())
            return in_shape(spans, nn.shape_of(op.results[0]), shape)
        if isinstance(op, Structured) and op in self.dims:
            access = op.structure().space.operands[index]
            return in_shape(axes_along(self.dims[op], access), access.shape, shape)
        return ()


def _last(block: Block) -> Operation:
    assert block.last_op is not None
    return block.last_op


def dims_along(spans: Spans, shape: tuple[int, ...], access: AccessMap) -> Spans:
    """The dimensions of a space that span what the axes of an operand do.

    Args:
        shape: of the operand, which the space may view in another shape.
    """
    found: list[Samples] = []
    for each in in_shape(spans, shape, access.shape):
        terms = access.axes[each.along].terms
        if terms:
            # In a sum of dimensions, the one that goes furthest numbers the samples.
            d, _ = max(terms, key=lambda term: abs(term[1]))
            found.append(Samples(d, each.count))
    return tuple(found)


def axes_along(dims: Spans, access: AccessMap) -> Spans:
    """The axes of a result that dimensions lie along."""
    found: list[Samples] = []
    for each in dims:
        reached = (i for i, a in enumerate(access.axes) if any(d == each.along for d, _ in a.terms))
        found += [Samples(i, each.count) for i in islice(reached, 1)]
    return tuple(found)


def in_shape(spans: Spans, shape: tuple[int, ...], other: tuple[int, ...]) -> Spans:
    """The axes that span samples after a reshape.

    An axis that lies behind others that it is merged with is lost, and so is each axis of a tensor
    without elements.

        4 samples along [4, 6] as [2, 12]: 2 along the first axis, 2 along the second
        24 samples along [24] as [2, 12]: 2 along the first axis, 12 along the second
    """
    if shape == other or not spans:
        return spans
    if not prod(shape):
        return ()
    found: list[Samples] = []
    groups = linear_groups(shape, other)
    for each in spans:
        along, count = each.along, each.count
        left, right = next(pair for pair in groups if along in pair[0])
        if prod(shape[i] for i in left[: left.index(along)]) != 1:
            continue
        for axis in right:
            size = other[axis]
            if count % size == 0:
                found += [Samples(axis, size)] if size > 1 else []
                count //= size
            else:
                found += [Samples(axis, count)] if size % count == 0 and count > 1 else []
                break
            if count == 1:
                break
    return tuple(found)


def batch_dim(space: Space, spans: Spans, replicas: int) -> Samples | None:
    """The dimension that replicas cut: the first one whose samples they can share equally, and a
    parallel one before a reduction. None if there is none."""
    fit = [each for each in spans if each.count % replicas == 0]
    kept = [each for each in fit if space.dims[each.along].kind == "parallel"]
    merged = [
        each
        for each in fit
        if space.dims[each.along].kind == "reduction"
        and space.dims[each.along].size % replicas == 0
    ]
    return next(iter((*kept, *merged)), None)
