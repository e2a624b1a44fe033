"""Decide which functions are computed together with the operation whose result they read."""

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
    and a tensor. If both operands of a function could take it, it joins a contraction, whose result
    is the largest and takes longest to compute; else it joins the first operand that can take it. A
    value with several readers may be inside a group if the group contains all of them. Groups that
    a module has already stay, and may grow.

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
"""For each operation in a group, the members of the group."""


def _wider(
    function: Operation, members: Members, order: Mapping[Operation, int]
) -> Iterator[tuple[Operation, ...]]:
    """Groups that contain a function, each larger than the group before it.

    Args:
        order: the position of each operation in the program.
    """
    own = members.get(function, (function,))
    for before in _candidates(function):
        joined = _together(members.get(before, (before,)), own, order)
        if joined is not None:
            yield joined
            own = joined
            break
    # A value with several readers may be inside a group that contains all of them.
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
    """The union of two groups; None if it is not a legal group."""
    joined = tuple(sorted({*first, *second}, key=lambda op: order[op]))
    return joined if joined != second and nn.is_group(joined) else None


def _candidates(function: Operation) -> Iterator[Operation]:
    """The producers of a function's operands, the best one to compute it with first."""
    if is_pointwise(function):
        owners = [v.owner for v in function.operands if isinstance(v.owner, Operation)]
        yield from sorted(owners, key=lambda each: not isinstance(each, nn.CONTRACTIONS))


FUSE = source_at("fuse what follows", FuseChains.apply)
