"""Let summaries read narrow tensors, which they compute with in 32 bits in any case."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import bf16, f16, f32

from ..dialects import nn
from ..dialects.levels import NN
from ..dialects.nn.group import GROUP
from ..ir.edit import Edit, source_at
from ..ir.provenance import locate
from ..ir.rewriting import may_rewrite
from ..ir.upstream import Context, InsertPoint, ModuleOp, ModulePass

PLAN = "plan"
"""The attribute of an operation that is planned already."""


@dataclass(frozen=True)
class ReadNarrow(ModulePass):
    """Let summaries read narrow tensors, which they compute with in 32 bits in any case. nn -> nn.

    A float of 16 bits that is cast to f32 for a summary, such as the moments of a normalisation, is
    read by it as it is. Each other reader of the cast gets a cast of its own, which becomes part of
    its group. So the wide tensor is not stored, and half as many bytes are exchanged.

        %1 = nn.cast %0                   %2, %3 = nn.compute(%0) ... body <identity moments>
        %2, %3 = nn.summarize "moments" %1 axes [1] keep_dims
    """

    name = "read-narrow"
    takes = NN
    skips_other_levels = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        for each in narrow_summaries(op):
            if may_rewrite():
                _rewrite(each)


def narrow_summaries(module: ModuleOp) -> list[nn.SummarizeOp]:
    """The summaries of tensors that are cast to f32 from a narrower float."""
    return [
        op
        for op in module.walk()
        if isinstance(op, nn.SummarizeOp)
        and not {GROUP, PLAN} & op.attributes.keys()
        and isinstance(op.operand.owner, nn.CastOp)
        and _widens(op.operand.owner)
    ]


def _widens(op: nn.CastOp) -> bool:
    """Whether a cast leads from a float of 16 bits to f32, in a block with all its readers."""
    element = nn.element_of(op.operand)
    narrow = element in (f16, bf16)
    readers = [use.operation for use in op.result.uses]
    here = all(each.parent is op.parent and GROUP not in each.attributes for each in readers)
    return narrow and nn.element_of(op.result) == f32 and here


def _rewrite(op: nn.SummarizeOp) -> None:
    """Let a summary read what is cast for it, and give other readers casts of their own."""
    cast = op.operand.owner
    assert isinstance(cast, nn.CastOp)
    with Edit(source_at("summarize narrow tensors", _rewrite), op) as edit:
        types = [nn.tensor_of(each) for each in op.results]
        made = nn.ComputeOp([cast.operand], op.structure(), *types)
        locate(made, op)
        edit.insert(made, InsertPoint.before(op))
        edit.replace(op, [*made.results])
        uses = [*cast.result.uses]
        for use in uses[1:]:
            own = cast.clone()
            edit.insert(own, InsertPoint.before(use.operation))
            edit.set_operand(use.operation, use.index, own.result)
        if not uses:
            edit.erase(cast)
