"""Move the rows of a tensor that constant indices name, instead of looking them up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.ir import Operation, SSAValue

from ..backends.target import Target
from ..dialects import nn
from ..dialects.dtypes import numpy_dtype
from ..dialects.levels import NN
from ..dialects.nn.group import GROUP, is_pointwise
from ..dialects.nn.take import taken_rows
from ..dialects.structured import Reinterpretation, Structured
from ..ir.edit import Edit, source_at
from ..ir.geometry.layout import linear_layout
from ..ir.geometry.space import Space
from ..ir.geometry.table import Table
from ..ir.rewriting import may_rewrite
from ..ir.support.arrays import Integers
from ..ir.upstream import Context, InsertPoint, ModuleOp, ModulePass
from .planner.alone import cycles_alone, cycles_from
from .planner.problem import Problem, movement_problem
from .plans.planned import asked_target

PLAN = "plan"
"""The attribute of an operation that is planned already."""


@dataclass(frozen=True)
class TakeKnownRows(ModulePass):
    """Move the rows that constant indices name, where that takes no more cycles. nn -> nn.

    A lookup receives the whole table, or merges what its tiles find. A movement receives only the
    rows that are named. The planner prices both, for a table in equal shares on all tiles. A
    function that is the only reader is computed together with a lookup, but not with a movement, so
    its superstep counts too. Tables that are inputs or states stay: the planner puts these where
    a lookup reads them.

        %1 = nn.constant [2, -1]
        %2 = nn.gather %0, %1 axis 0            %2 = nn.take %0 axis 0 places [2, 3] value 0.0

    An index that the table does not have is a fault of the run, so such a lookup stays.

    Attributes:
        target: as for plan-splits.
    """

    name = "take-known-rows"
    takes = NN
    skips_other_levels = True

    target: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        found = known_lookups(op)
        if not found:
            return
        target = asked_target(op, self.target)
        for each in found:
            if may_rewrite() and _moves_as_fast(each, target):
                _rewrite(each)


def known_lookups(module: ModuleOp) -> list[nn.GatherOp]:
    """The lookups of constant rows, all of which exist, in tables that the program computes."""
    return [
        op
        for op in module.walk()
        if isinstance(op, nn.GatherOp)
        and not {GROUP, PLAN} & op.attributes.keys()
        and _is_computed(op.table)
        and _rows(op) is not None
    ]


def _is_computed(value: SSAValue) -> bool:
    """Whether an operation computes or moves a value."""
    op = value.owner
    while isinstance(op, Reinterpretation) and isinstance(op, Operation):
        op = op.operands[0].owner
    return isinstance(op, Operation) and not isinstance(op, nn.LoadOp | nn.ConstantOp)


def _rows(op: nn.GatherOp) -> Integers | None:
    """The rows that a lookup names, from the front; None if they are unknown or one is a fault."""
    held = op.indices.owner
    if not isinstance(held, nn.ConstantOp):
        return None
    rows, size = held.value.array.ravel().astype(np.int64), nn.shape_of(op.table)[op.table_axis]
    if not rows.size or rows.min() < -size or rows.max() >= size:
        return None
    return np.where(rows < 0, rows + size, rows)


def _moves_as_fast(op: nn.GatherOp, target: Target) -> bool:
    """Whether to move the rows takes no more cycles than to look them up."""
    table, index, element = (
        numpy_dtype(nn.element_of(value)) for value in (op.table, op.indices, op.result)
    )
    shape = nn.shape_of(op.table)
    lies = linear_layout(shape, table.itemsize, target.tiles, chips=target.chips)
    looking = Problem(op.structure(), (table, index), element, (False, True))
    moving = movement_problem((_moved(op),), element)
    after = cycles_from(moving, (lies,), target) + _reading(op, target)
    return after <= cycles_from(looking, (lies, None), target)


def _moved(op: nn.GatherOp) -> Space:
    rows = _rows(op)
    assert rows is not None
    return taken_rows(nn.shape_of(op.table), op.table_axis, Table.of(rows))


def _reading(op: nn.GatherOp, target: Target) -> float:
    """The cycles of the only reader of a lookup, if it is computed together with it; else 0."""
    readers = [use.operation for use in op.result.uses]
    if len(readers) != 1 or not is_pointwise(readers[0]) or not nn.is_group((op, readers[0])):
        return 0.0
    (reader,) = readers
    assert isinstance(reader, Structured)
    dtypes = [numpy_dtype(nn.element_of(each)) for each in (*reader.operands, *reader.results)]
    return cycles_alone(reader.structure(), dtypes, [True] * len(reader.operands), target)


def _rewrite(op: nn.GatherOp) -> None:
    rows = _rows(op)
    assert rows is not None
    with Edit(source_at("move known rows", _rewrite), op) as edit:
        made: nn.TakeOp | nn.ReshapeOp = nn.TakeOp(op.table, rows, op.table_axis)
        made.location = op.location
        edit.insert(made, InsertPoint.before(op))
        if nn.shape_of(made.result) != nn.shape_of(op.result):
            made = nn.ReshapeOp(made.result, nn.shape_of(op.result))
            made.location = op.location
            edit.insert(made, InsertPoint.before(op))
        edit.replace(op, [made.result])
