"""Compute every operation by itself."""

from __future__ import annotations

from dataclasses import dataclass

from ..dialects.levels import NN, PLANNED
from ..dialects.nn.group import GROUP
from ..ir.edit import Edit, source_at
from ..ir.rewriting import may_rewrite
from ..ir.upstream import Context, ModuleOp, ModulePass
from ..ir.xdsl.walk import operations


@dataclass(frozen=True)
class Unfuse(ModulePass):
    """Remove the groups that fuse-chains or a user wrote. nn -> nn, values unchanged.

    The plan of a group goes too, because it was made for all its operations.

        %1 = nn.conv %x, %w stride [1] ... {group = 0}      %1 = nn.conv %x, %w stride [1] ...
        %2 = nn.add %1, %b {group = 0}                      %2 = nn.add %1, %b
    """

    name = "unfuse"
    takes = NN
    decided = PLANNED
    skips_other_levels = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        for each in operations(op):
            if GROUP in each.attributes and may_rewrite():
                with Edit(UNFUSE, each) as edit:
                    del each.attributes[GROUP]
                    each.attributes.pop("plan", None)
                    edit.modified(each)


UNFUSE = source_at("compute it by itself", Unfuse.apply)
