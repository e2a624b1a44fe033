"""Compute what a short softmax divides by in one reduction instead of two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from ..dialects import nn
from ..dialects.levels import NN
from ..dialects.nn.group import GROUP
from ..ir.edit import Edit, source_at
from ..ir.provenance import fused
from ..ir.rewriting import may_rewrite
from ..ir.upstream import Context, InsertPoint, ModuleOp, ModulePass

MOST_ELEMENTS = 1 << 16
"""The most elements of a softmax that is rewritten.

Of so few, a tile has some dozens, so that supersteps take longer than computing exponentials twice.
"""

PLAN = "plan"
"""The attribute of an operation that is planned already."""


@dataclass(frozen=True)
class SummarizeSoftmax(ModulePass):
    """Compute what a short softmax divides by in one reduction instead of two. nn -> nn.

    The largest element and the sum of exponentials are one reduction with two results, so that
    parts of a row on several tiles are merged once. Exponentials are computed twice, and no longer
    stored between supersteps.

        %1 = nn.reduce "max" %0        %1, %4 = nn.summarize "exp_sum" %0
        %2 = nn.sub %0, %1             %2 = nn.sub %0, %1
        %3 = nn.exp %2                 %3 = nn.exp %2
        %4 = nn.reduce "sum" %3        %5 = nn.div %3, %4
        %5 = nn.div %3, %4
    """

    name = "summarize-softmax"
    takes = NN
    skips_other_levels = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        for each in list(op.walk()):
            if isinstance(each, nn.ReduceOp):
                found = _sum_of_exponentials(each)
                if found is not None and may_rewrite():
                    _rewrite(found, each)


def has_short_softmax(module: ModuleOp) -> bool:
    """Whether a program has a softmax of few elements."""
    return any(
        isinstance(op, nn.SoftmaxOp) and prod(nn.shape_of(op.result)) <= MOST_ELEMENTS
        for op in module.walk()
    )


def _sum_of_exponentials(total: nn.ReduceOp) -> nn.ReduceOp | None:
    """The reduction to the largest element, if another one adds up the exponentials below it."""
    power = total.operand.owner
    if total.combiner.data != "sum" or not isinstance(power, nn.ExpOp):
        return None
    centred = power.operand.owner
    if not isinstance(centred, nn.SubOp):
        return None
    largest = centred.rhs.owner
    if not isinstance(largest, nn.ReduceOp) or largest.combiner.data != "max":
        return None
    if largest.operand is not centred.lhs or largest.parent is not total.parent:
        return None
    # Only the difference reads the largest element, so nothing but a softmax is changed. Only the
    # exponentials are divided by the sum: of a row of -infinity, it is NaN before and 0 afterwards,
    # and the quotients are NaN in both.
    if not largest.result.has_one_use() or not centred.result.has_one_use():
        return None
    readers = [use.operation for use in total.result.uses]
    if not all(isinstance(r, nn.DivOp) and r.lhs is power.result for r in readers):
        return None
    alike = _axes(largest) == _axes(total) and largest.keep_dims == total.keep_dims
    ops = (total, power, centred, largest)
    if not alike or any({GROUP, PLAN} & op.attributes.keys() for op in ops):
        return None
    shape = nn.shape_of(largest.operand)
    return largest if 0 < prod(shape) <= MOST_ELEMENTS else None


def _axes(op: nn.ReduceOp) -> Sequence[int]:
    return nn.values_of(op.axes)


def _rewrite(largest: nn.ReduceOp, total: nn.ReduceOp) -> None:
    """Replace the two reductions of a softmax by one."""
    with Edit(source_at("summarize softmax", _rewrite), total) as edit:
        made = nn.SummarizeOp(
            largest.operand, "exp_sum", _axes(largest), keep_dims=largest.keep_dims is not None
        )
        made.location = fused([largest, total])
        edit.insert(made, InsertPoint.before(largest))
        values: list[SSAValue] = [*made.results]
        edit.replace(largest, values[:1])
        edit.replace(total, values[1:])
