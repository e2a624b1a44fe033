"""Decide which functions are computed in the operation before them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import Operation

from ..dialects import nn
from ..dialects.levels import NN
from ..dialects.nn.elementwise import ElementwiseOp
from ..ir.edit import Edit, source_at
from ..ir.rewriting import may_rewrite
from ..ir.upstream import Context, ModuleOp, ModulePass
from ..ir.xdsl.walk import operations


@dataclass(frozen=True)
class FuseChains(ModulePass):
    """Group functions with the operation whose result they read. nn -> nn, values unchanged.

    A function that is the only reader of an operation's result, such as a bias, an activation or a
    residual, is computed in that operation before it writes the result. This saves a compute set
    and a tensor. Of the two operands of a function, it is computed in a contraction if it can be,
    because these results are the largest and take longest to compute; else in the first that can
    have it. Groups that a module has already stay, and may grow.

        %1 = nn.conv %x, %w stride [1] ...      %1 = nn.conv %x, %w stride [1] ... {group = 0}
        %2 = nn.add %1, %b                      %2 = nn.add %1, %b {group = 0}
    """

    name = "fuse-chains"
    takes = NN
    skips_other_levels = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        every = operations(op)
        blocks = dict.fromkeys(each.parent for each in every)
        groups = [g for block in blocks if block is not None for g in nn.groups_of(block)]
        members = {each: group.members for group in groups for each in group.members}
        free = nn.free_number(every)
        for function in every:
            for before in _candidates(function):
                joined = (*members.get(before, (before,)), *members.get(function, (function,)))
                if not _can_join(joined, before, function) or not may_rewrite():
                    continue
                grouped = next((each for each in (before, function) if each in members), None)
                own = None if grouped is None else nn.number_of_group(grouped)
                with Edit(FUSE, function) as edit:
                    nn.join(free if own is None else own, joined)
                    for each in joined:
                        edit.modified(each)
                members.update((each, joined) for each in joined)
                free += own is None
                break


def _candidates(function: Operation) -> Iterator[Operation]:
    """The operations whose results a function reads, those first in which it is best computed."""
    if isinstance(function, ElementwiseOp):
        owners = [v.owner for v in function.operands if isinstance(v.owner, Operation)]
        yield from sorted(owners, key=lambda each: not isinstance(each, nn.CONTRACTIONS))


def _can_join(joined: tuple[Operation, ...], before: Operation, function: Operation) -> bool:
    place = joined.index(function)
    return (
        len(joined) <= nn.MOST_MEMBERS
        and joined[place - 1] is before
        and nn.can_follow(before, function)
    )


FUSE = source_at("fuse what follows", FuseChains.apply)
