"""Decide which functions are computed in the operation before them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.ir import Operation

from ..dialects import nn
from ..dialects.levels import NN
from ..dialects.nn.group import is_pointwise
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
    have it. A value that is read more than once is computed in the group that has all its readers.
    Groups that a module has already stay, and may grow.

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
        order = {each: i for i, each in enumerate(every)}
        free = nn.free_number(every)
        for function in every:
            for joined in _wider(function, members, order):
                if not may_rewrite():
                    break
                grouped = next((each for each in joined if each in members), None)
                own = None if grouped is None else nn.number_of_group(grouped)
                with Edit(FUSE, function) as edit:
                    nn.join(free if own is None else own, joined)
                    for each in joined:
                        edit.modified(each)
                members.update((each, joined) for each in joined)
                free += own is None


Members = Mapping[Operation, tuple[Operation, ...]]
"""The members of the group of each operation that has one."""


def _wider(
    function: Operation, members: Members, order: Mapping[Operation, int]
) -> Iterator[tuple[Operation, ...]]:
    """Groups with a function, each of which contains the one before it.

    order: the place of each operation in the program.
    """
    own = members.get(function, (function,))
    for before in _candidates(function):
        joined = _together(members.get(before, (before,)), own, order)
        if joined is not None:
            yield joined
            own = joined
            break
    # A value that is read more than once can be computed in a group that has all its readers.
    for value in dict.fromkeys(v for op in own for v in op.operands):
        before = value.owner
        if isinstance(before, Operation) and before not in own and value.has_more_than_one_use():
            joined = _together(members.get(before, (before,)), own, order)
            if joined is not None:
                yield joined
                own = joined


def _together(
    first: tuple[Operation, ...], second: tuple[Operation, ...], order: Mapping[Operation, int]
) -> tuple[Operation, ...] | None:
    """Two groups as one; None if they cannot be one."""
    joined = tuple(sorted({*first, *second}, key=lambda op: order[op]))
    return joined if joined != second and nn.is_group(joined) else None


def _candidates(function: Operation) -> Iterator[Operation]:
    """The operations whose results a function reads, those first in which it is best computed."""
    if is_pointwise(function):
        owners = [v.owner for v in function.operands if isinstance(v.owner, Operation)]
        yield from sorted(owners, key=lambda each: not isinstance(each, nn.CONTRACTIONS))


FUSE = source_at("fuse what follows", FuseChains.apply)
