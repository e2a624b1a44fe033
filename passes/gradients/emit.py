"""Builds the operations of gradients: scalar expressions, sums over broadcast axes, and spaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import nn
from ...dialects.dtypes import numpy_dtype
from ...dialects.nn.elementwise import broadcast_space
from ...dialects.scalar_functions import FUNCTIONS
from ...dialects.slopes import Term
from ...dialects.structured import Body, Structure
from ...ir.blob import Blob
from ...ir.edit import Edit
from ...ir.geometry.space import AccessMap, AxisMap, Dim, Space
from ...ir.geometry.transpose import Transposed, canonical, spread_out, transposed
from ...ir.phases import BACKWARD
from ...ir.provenance import at
from ...ir.upstream import InsertPoint

BY_FUNCTION: Mapping[str, type[nn.ElementwiseOp]] = {
    cls.name.partition(".")[2]: cls for cls in nn.ELEMENTWISE if issubclass(cls, nn.ElementwiseOp)
}
"""The operation class of each scalar function."""


@dataclass
class Emitter:
    """Inserts operations before a given one, located below the operation whose gradient they
    compute.

    Attributes:
        before: new operations are inserted before this one.
        source: the operation that is being differentiated.
        step: the last part of locations, which also determines the phase (see ir/phases.py).
    """

    edit: Edit
    before: Operation
    source: Operation
    step: str = BACKWARD
    made: list[Operation] = field(default_factory=list[Operation])
    zeros: dict[Attribute, SSAValue] = field(default_factory=dict[Attribute, SSAValue])

    def __call__(self, op: nn.PureTensorOp | nn.ConstantOp | nn.ComputeOp) -> SSAValue:
        """Insert an operation, and return its result."""
        return self.insert(op).results[0]

    def insert(self, op: Operation) -> Operation:
        """Insert an operation."""
        op.location = at(self.source, self.step)
        self.edit.insert(op, InsertPoint.before(self.before))
        self.made.append(op)
        return op

    def constant(self, value: float, like: SSAValue, shape: Sequence[int] = ()) -> SSAValue:
        """A constant with the element type of another value."""
        dtype = numpy_dtype(nn.element_of(like))
        array = np.broadcast_to(np.array(value, dtype), tuple(shape))
        return self(nn.ConstantOp(Blob(array)))

    def zero(self, like: SSAValue) -> SSAValue:
        """The number 0 as a tensor without axes, with the element type of another value."""
        element = nn.element_of(like)
        if element not in self.zeros:
            self.zeros[element] = self.constant(0.0, like)
        return self.zeros[element]

    def zeros_like(self, value: SSAValue) -> SSAValue:
        """Zeros of the type of another value."""
        return self.constant(0.0, value, nn.shape_of(value))

    def ones_like(self, value: SSAValue) -> SSAValue:
        """Ones of the type of another value."""
        return self.constant(1.0, value, nn.shape_of(value))

    def function(
        self, name: str, operands: Sequence[SSAValue], parameters: Sequence[float] = ()
    ) -> SSAValue:
        """A scalar function of values that broadcast together."""
        if name not in BY_FUNCTION:
            shapes = tuple(map(nn.shape_of, operands))
            space = broadcast_space(shapes, np.broadcast_shapes(*shapes))
            return self(
                nn.ComputeOp(operands, Structure(space, Body(name, None, tuple(parameters))))
            )
        # The constructor of each class takes the operands, then the constants.
        return self(cast(Any, BY_FUNCTION[name])(*operands, *parameters))

    def term(self, term: Term, values: Mapping[str, SSAValue]) -> SSAValue:
        """An expression of values that broadcast together. Equal parts are computed once."""
        made: dict[Term, SSAValue] = {}

        def value(each: Term) -> SSAValue:
            if each.is_value:
                return values[each.name] if each.name in values else self.zero(values["g"])
            if each not in made:
                operands = [value(operand) for operand in each.operands]
                made[each] = self.function(each.name, operands, each.parameters)
            return made[each]

        return value(term)

    def add(self, values: Sequence[SSAValue]) -> SSAValue:
        """The sum of values of one type.

        A table that a scatter made of some rows is added to the sum by an update of these rows
        only.
        """
        whole = [v for v in values if not _is_of_rows(v)]
        total, *others = whole + [v for v in values if _is_of_rows(v)]
        for each in others:
            total = (
                self._with_rows(total, each) if _is_of_rows(each) else self(nn.AddOp(total, each))
            )
        return total

    def _with_rows(self, total: SSAValue, table: SSAValue) -> SSAValue:
        """A value plus a table that a scatter made. The scatter is removed; an update adds its rows
        instead.
        """
        scatter = table.owner
        assert isinstance(scatter, nn.ScatterOp)
        axis, rank = scatter.table_axis, len(nn.shape_of(total))
        (count,) = nn.shape_of(scatter.indices)
        index = self.reshaped(scatter.indices, [count if i == axis else 1 for i in range(rank)])
        made = self(nn.UpdateOp(scatter.updates, index, total, "sum", axis))
        self.edit.erase(scatter)
        return made

    def reshaped(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """A value in another shape; the value itself if it has that shape."""
        same = nn.shape_of(value) == tuple(shape)
        return value if same else self(nn.ReshapeOp(value, shape))

    def expanded(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """A value repeated to a shape that it broadcasts to."""
        same = nn.shape_of(value) == tuple(shape)
        return value if same else self(nn.ExpandOp(value, shape))

    def summed_to(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """A gradient of this value's shape, summed over the axes along which `shape` was broadcast
        to it.
        """
        own, skip = nn.shape_of(value), len(nn.shape_of(value)) - len(shape)
        axes = [i for i, n in enumerate(own) if i < skip or (n != 1 and shape[i - skip] == 1)]
        if any(own[i] != 1 for i in axes):
            value = self(nn.ReduceOp(value, "sum", axes))
        return self.reshaped(value, shape)

    def transpose(
        self,
        space: Space,
        operand: AccessMap,
        shape: Sequence[int],
        function: str,
        parameters: Sequence[float],
        reads: Sequence[tuple[SSAValue, AccessMap]],
        gradient: int,
        named: Sequence[nn.ChainableOp] = (),
        related: Sequence[tuple[SSAValue, AccessMap]] = (),
    ) -> SSAValue:
        """The gradient of an operand of a space: the sum of the gradients that points pass back to
        it.

        Args:
            operand, shape: the map and the shape of the operand.
            function, parameters: compute the gradient that each point passes back.
            reads: the operands of that function, each with its map.
            gradient: the index among them of the operand that is 0 wherever nothing is passed back.
            named: candidate operations; one with the same space and body is used instead of an
                nn.compute.
            related: the operands of the relations of the space, each with its map.
        """
        if 0 in space.sizes or 0 in operand.shape:
            return self.constant(0.0, reads[gradient][0], shape)
        spread = spread_out(operand, space.sizes)
        if spread is not None:
            wide, axes = spread.access, spread.access.shape
            call = (function, parameters, reads, gradient, (), related)
            copies = self.transpose(space, wide, axes, *call)
            return self.reshaped(
                self.compute([copies], spread.gathered, Body("identity", "sum")), shape
            )
        reads = (*reads, *related)
        order = [gradient, *(i for i in range(len(reads)) if i != gradient)]
        parts = transposed(space, operand, [reads[i][1] for i in order])
        back = [order.index(i) for i in range(len(reads))]
        total: list[SSAValue] = []
        for part in parts:
            found = part.space
            operands = tuple(found.operands[i] for i in back)
            found = Space(found.dims, operands, found.results, found.relations)
            body = _body(function, parameters, found)
            same = _same(named, found, body) if len(parts) == 1 and not part.repeats else None
            if same is not None:
                return self.reshaped(self(same), shape)
            values = [value for value, _ in reads]
            if part.repeats:
                whole = reads[gradient][1].shape
                seen = self.reshaped(values[gradient], whole)
                values[gradient] = self.expanded(seen, (*part.repeats, *whole))
            box = self.compute(values, found, body)
            total.append(self._in_place(box, part, operand.shape))
        return self.reshaped(self.add(total), shape)

    def compute(self, values: Sequence[SSAValue], space: Space, body: Body) -> SSAValue:
        """An nn.compute of a space and a body; a plain reduction or repetition becomes that
        operation.
        """
        if body in (Body("identity", "sum"), Body("identity")) and not space.relations:
            plain = self._plain(values[0], space)
            if plain is not None:
                return plain
        return self(nn.ComputeOp(values, Structure(space, body)))

    def _plain(self, value: SSAValue, space: Space) -> SSAValue | None:
        """The space as a sum over whole axes, or a repetition along new ones; None for any other
        space.
        """
        (read,), (result,) = space.operands, space.results
        wanted: list[int] = []
        for axis in read.axes:
            terms = axis.terms
            if terms and axis != AxisMap(space.dims[terms[0][0]].size, ((terms[0][0], 1),)):
                return None
            if not terms and (axis.size != 1 or axis.offset):
                return None
            wanted.append(terms[0][0] if terms else -1)
        named = [d for d in wanted if d >= 0]
        if len(set(named)) != len(named):
            return None
        value = self.reshaped(value, read.shape)
        merged = [i for i, d in enumerate(wanted) if d >= 0 and space.dims[d].kind == "reduction"]
        if any(d not in named for d in space.of_kind("reduction")):
            return None
        if merged:
            value = self(nn.ReduceOp(value, "sum", merged))
        left = [d for d in named if space.dims[d].kind == "parallel"]
        order = [axis.terms[0][0] for axis in result.axes if axis.terms]
        value = self.reshaped(value, [space.dims[d].size for d in left])
        kept = [d for d in order if d in left]
        if kept != left:
            value = self(nn.TransposeOp(value, [left.index(d) for d in kept]))
        seen = [axis.size if axis.terms and axis.terms[0][0] in kept else 1 for axis in result.axes]
        return self.expanded(self.reshaped(value, seen), result.shape)

    def _in_place(self, box: SSAValue, part: Transposed, shape: Sequence[int]) -> SSAValue:
        """A box, placed in a tensor of this shape with zeros around it."""
        own = part.space.results[0].shape
        low = part.starts
        high = [n - start - m for n, start, m in zip(shape, low, own, strict=True)]
        return self(nn.PadOp(box, low, high)) if any(low) or any(high) else box


def _is_of_rows(value: SSAValue) -> bool:
    """Whether a value is the unread result of a scatter by sum, which has zeros in all other
    rows."""
    made = value.owner
    return (
        isinstance(made, nn.ScatterOp)
        and made.combiner.data == "sum"
        and len(nn.shape_of(made.indices)) == 1
        and value.first_use is None
    )


def _body(function: str, parameters: Sequence[float], space: Space) -> Body:
    merged = "sum" if space.of_kind("reduction") or space.relations else None
    return Body(function, merged, tuple(parameters))


def _same(named: Sequence[nn.ChainableOp], space: Space, body: Body) -> nn.ChainableOp | None:
    """The candidate operation with this space and body; all others are erased.

    The operands of a commutative function may be swapped.
    """
    orders = [space]
    if FUNCTIONS[body.function].commutative:
        orders.append(Space(space.dims, space.operands[::-1], space.results))
    wanted = [canonical(each) for each in orders]
    found: nn.ChainableOp | None = None
    for op in named:
        structure = op.structure()
        own = structure.body
        alike = (own.function, own.combiner) == (body.function, body.combiner)
        if found is None and alike and canonical(structure.space) in wanted:
            found = op
        else:
            op.drop_all_references()
    return found


def points(space: Space, result: AccessMap) -> tuple[Space, AccessMap]:
    """A space in which every dimension is parallel, and the map of its result: one axis per
    dimension.

    The axes of the old result come first, then the dimensions that were merged.
    """
    first = [axis.terms[0][0] for axis in result.axes if axis.terms]
    order = [*first, *(d for d in range(len(space.dims)) if d not in first)]
    dims = tuple(Dim(dim.name, dim.size) for dim in space.dims)
    access = AccessMap(
        tuple(AxisMap(dims[d].size, ((d, 1),) if dims[d].size != 1 else ()) for d in order)
    )
    return Space(dims, space.operands, (access,), space.relations), access
