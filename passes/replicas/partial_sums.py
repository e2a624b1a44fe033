"""Sums over a batch, of which each replica keeps its own part.

A sum over samples is the sum of the sums of all replicas. These are a tensor with a leading axis of
replicas, which is cut across chips, so each chip holds its own. What is linear in the sum can be
computed of the parts: casts, factors, other shapes, and sums with other such parts. So a loop over
micro-batches carries parts, and chips exchange bytes once, after the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import i1
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ...dialects import control, nn
from ...dialects.structured import Structured
from ...ir.edit import Edit
from ...ir.geometry.space import AccessMap, AxisMap, Space, split_reduction
from ...ir.upstream import InsertPoint
from ..gradients.way import is_float
from .following import Spans, batch_dim

LINEAR = (nn.CastOp, nn.ScaleOp, nn.ReshapeOp, nn.TransposeOp)
"""Operations of one operand that are linear in it. Casts are, but for their rounding."""


@dataclass
class PartialSums:
    """The sums of replicas.

    Attributes:
        replicas: how many there are.
        dims: the dimensions of each operation that span samples.
        combined: makes the sum of all replicas from their own sums, in front of an operation.
        whole: operations that replicas do not share.
    """

    replicas: int
    dims: Mapping[Operation, Spans]
    edit: Edit
    combined: Callable[[SSAValue, Operation], SSAValue]
    whole: Collection[Operation] = ()
    parts: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    # Which values have parts

    def has_parts(self, value: SSAValue) -> bool:
        """Whether the parts of a value can be computed, and nothing else reads it."""
        if value in self.parts:
            return True
        op = value.owner
        if not isinstance(op, Operation) or not value.has_one_use():
            return False
        if isinstance(op, LINEAR):
            return is_float(value) and self.has_parts(op.operands[0])
        if isinstance(op, nn.AddOp):
            return nn.shape_of(op.lhs) == nn.shape_of(op.rhs) and all(
                map(self.has_parts, op.operands)
            )
        return self.is_sum(op)

    def is_sum(self, op: Operation) -> bool:
        """Whether an operation sums over samples, and nothing follows that sum."""
        if not isinstance(op, Structured) or len(op.results) != 1 or op not in self.dims:
            return False
        if op in self.whole or nn.element_of(op.results[0]) == i1:
            # An operation of nn may merge truth values, but nn.compute adds up numbers only.
            return False
        structure = op.structure()
        body, space = structure.body, structure.space
        if body.is_scaled_product:
            # Only operations of products may have a scale.
            return False
        if body.combiner != "sum" or body.then or body.resumes or body.narrow is not None:
            return False
        found = batch_dim(space, self.dims[op], self.replicas)
        if found is None:
            return False
        along = space.dims[found.along]
        # A sum of no samples has no parts.
        return along.kind == "reduction" and along.size > 0

    # The parts

    def part(self, value: SSAValue) -> SSAValue:
        """The parts of a value, with a leading axis of replicas."""
        if value not in self.parts:
            op = value.owner
            assert isinstance(op, Operation)
            self.parts[value] = self._part(op)
        return self.parts[value]

    def _part(self, op: Operation) -> SSAValue:
        match op:
            case nn.CastOp():
                made = nn.CastOp(self.part(op.operand), nn.element_of(op.result))
            case nn.ScaleOp():
                (factor,) = op.parameters
                made = nn.ScaleOp(self.part(op.operand), factor)
            case nn.ReshapeOp():
                made = nn.ReshapeOp(self.part(op.operand), (self.replicas, *nn.shape_of(op.result)))
            case nn.TransposeOp():
                order = [0, *(i + 1 for i in op.permutation.get_values())]
                made = nn.TransposeOp(self.part(op.operand), order)
            case nn.AddOp():
                made = nn.AddOp(self.part(op.lhs), self.part(op.rhs))
            case _:
                made = self._sum(op)
        return self._insert(made, op)

    def _sum(self, op: Operation) -> nn.ComputeOp:
        """A sum over samples, with a dimension of replicas in front."""
        assert isinstance(op, Structured)
        structure = op.structure()
        found = batch_dim(structure.space, self.dims[op], self.replicas)
        assert found is not None
        space = in_front(split_reduction(structure.space, found.along, self.replicas, 0.0))
        # The space may view the result in another shape.
        shape = (self.replicas, *nn.shape_of(op.results[0]))
        type_ = nn.tensor(shape, nn.element_of(op.results[0]))
        return nn.ComputeOp(op.operands, replace(structure, space=space), type_)

    def _insert(self, made: Operation, like: Operation) -> SSAValue:
        made.location = like.location
        self.edit.insert(made, InsertPoint.before(like))
        return made.results[0]

    # Sums that a loop carries

    def carry(self, loop: control.RepeatOp) -> None:
        """Let a loop carry the parts of the sums that it collects."""
        body, last = loop.body.block, loop.body.block.last_op
        assert isinstance(last, control.YieldOp)
        found = [
            (i, own)
            for i, total in enumerate(last.operands)
            if (own := self._added(body, i, total)) is not None and self._is_zero(loop.initial[i])
        ]
        for i, own in found:
            argument = body.args[i]
            first = self._zeros(loop, loop.initial[i])
            shape = nn.shape_of(first)
            self.edit.set_operand(loop, i, first)
            total = last.operands[i]
            add = total.owner
            assert isinstance(add, nn.AddOp)
            retype(argument, shape)
            self._replace_total(add, argument, own)
            whole = loop.outputs[i]
            retype(whole, shape)
            after = loop.next_op
            assert after is not None
            uses = [*whole.uses]
            summed = self.combined(whole, after)
            for use in uses:
                self.edit.set_operand(use.operation, use.index, summed)

    def clean(self) -> None:
        """Remove the operations that only computed sums whose parts are computed now."""
        for value in reversed([*self.parts]):
            if isinstance(value.owner, Operation) and not any(r.uses for r in value.owner.results):
                self.edit.erase(value.owner)

    def _replace_total(self, add: nn.AddOp, argument: SSAValue, own: SSAValue) -> None:
        made = nn.AddOp(argument, self.part(own))
        made.location = add.location
        self.edit.insert(made, InsertPoint.before(add))
        self.edit.replace(add, [made.result])

    def _added(self, body: Block, index: int, total: SSAValue) -> SSAValue | None:
        """What an iteration adds to the argument with an index, if it only adds to it and the parts
        of that can be computed."""
        add = total.owner
        if not isinstance(add, nn.AddOp) or not total.has_one_use():
            return None
        for mine, other in (add.operands, add.operands[::-1]):
            if (
                isinstance(mine, BlockArgument)
                and mine.block is body
                and mine.index == index
                and mine.has_one_use()
                and nn.shape_of(mine) == nn.shape_of(other)
                and self.has_parts(other)
            ):
                return other
        return None

    def _is_zero(self, value: SSAValue) -> bool:
        op = value.owner
        match op:
            case nn.ConstantOp():
                return not op.value.array.any()
            case nn.ExpandOp() | nn.CastOp() | nn.ReshapeOp():
                return self._is_zero(op.operands[0])
            case nn.ScaleOp():
                return tuple(op.parameters) == (0.0,)
            case _:
                return False

    def _zeros(self, loop: Operation, value: SSAValue) -> SSAValue:
        """Zeros of the parts of a value: zeros of the value, repeated."""
        shape = (self.replicas, *nn.shape_of(value))
        made = nn.ExpandOp(value, shape)
        source = value.owner if isinstance(value.owner, Operation) else loop
        made.location = source.location
        self.edit.insert(made, InsertPoint.before(loop))
        return made.results[0]


def retype(value: SSAValue, shape: Sequence[int]) -> None:
    """Give a value another shape."""
    value._type = nn.tensor(shape, nn.element_of(value))  # pyright: ignore[reportPrivateUsage]


def in_front(space: Space) -> Space:
    """The same space with its last dimension in front of all others."""
    last = len(space.dims) - 1

    def axis(each: AxisMap) -> AxisMap:
        terms = tuple((0 if d == last else d + 1, a) for d, a in each.terms)
        return replace(each, terms=terms)

    def access(each: AccessMap) -> AccessMap:
        return replace(each, axes=tuple(map(axis, each.axes)))

    return Space(
        (space.dims[-1], *space.dims[:-1]),
        tuple(map(access, space.operands)),
        tuple(map(access, space.results)),
        tuple(replace(each, axis=axis(each.axis)) for each in space.relations),
        tuple(each.mapped(axis) for each in space.positions),
    )


def loops_of(ops: Sequence[Operation]) -> list[control.RepeatOp]:
    """The loops among operations whose iterations are no runs, the innermost first."""
    return [op for op in reversed(ops) if isinstance(op, control.RepeatOp) and op.runs is None]
