"""Cuts programs into functions that lie on chips of their own.

Neighbouring operations of a program become a function, which is given the values that they read,
and returns those that are read elsewhere. States that they read are given, or loaded inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ....dialects import nn
from ....dialects.placement import CHIPS, Placement
from ....ir.provenance import named

MOST_FUNCTIONS = 4

CUT = 0.8
"""How often neighbouring operations become a function."""
PLACED = 0.85
"""How often a function says on which chips it lies."""
LOADED_INSIDE = 0.5
"""How often a function loads a state that it reads, instead of being given the value."""


def outlined(
    ops: Sequence[Operation], chips: int, random: Random
) -> tuple[list[Operation], list[FuncOp]]:
    """Operations of one block, in which calls replace some of them, and the called functions.

    Args:
        ops: operations without a block, in order. Values that other operations read are results.
        chips: of the machine.
    """
    parts = random.randint(1, MOST_FUNCTIONS)
    cuts = sorted(random.randint(0, len(ops)) for _ in range(parts - 1))
    found: list[Operation] = []
    functions: list[FuncOp] = []
    for begin, end in zip((0, *cuts), (*cuts, len(ops)), strict=True):
        own = ops[begin:end]
        call = None
        if own and random.random() < CUT:
            call = _call(f"part{len(functions)}", own, chips, random)
        if call is None:
            found += own
        else:
            found.append(call[0])
            functions.append(call[1])
    return found, functions


def _call(
    name: str, ops: Sequence[Operation], chips: int, random: Random
) -> tuple[CallOp, FuncOp] | None:
    """A call of a new function with the operations; None if nothing reads their results."""
    inside = {each for op in ops for each in op.walk()}
    results = [
        value
        for op in ops
        for value in op.results
        if any(use.operation not in inside for use in value.uses)
    ]
    if not results:
        return None
    loads: list[Operation] = []
    given: list[SSAValue] = []
    for value in _read(ops, inside):
        if isinstance(value.owner, nn.LoadOp) and random.random() < LOADED_INSIDE:
            loads.append(value.owner)
        else:
            given.append(value)
    call = CallOp(name, given, [value.type for value in results])
    call.location = named(name)
    for old, new in zip(results, call.results, strict=True):
        old.replace_uses_with_if(new, lambda use: use.operation not in inside)
    block = Block(arg_types=[value.type for value in given])
    _replace(given, block.args, inside)
    for load in loads:
        again = load.clone()
        block.add_op(again)
        _replace(load.results, again.results, inside)
    block.add_ops([*ops, ReturnOp(*results)])
    function = FuncOp(name, (block.arg_types, [v.type for v in results]), Region(block))
    if random.random() < PLACED:
        function.attributes[CHIPS] = random_placement(chips, random).attribute
    return call, function


def _read(ops: Iterable[Operation], inside: set[Operation]) -> list[SSAValue]:
    """The values that operations read and do not make, in order."""
    blocks = {block for op in inside for region in op.regions for block in region.blocks}
    found: dict[SSAValue, None] = {}
    for op in ops:
        for each in op.walk():
            for value in each.operands:
                if value.owner not in inside and value.owner not in blocks:
                    found[value] = None
    return [*found]


def _replace(old: Sequence[SSAValue], new: Sequence[SSAValue], inside: set[Operation]) -> None:
    for before, after in zip(old, new, strict=True):
        before.replace_uses_with_if(after, lambda use: use.operation in inside)


def random_placement(chips: int, random: Random) -> Placement:
    """Some chips of a machine."""
    count = random.choice([1, 1, random.randint(1, chips)])
    apart = 1 if count == 1 else random.randint(1, (chips - 1) // (count - 1))
    return Placement(random.randint(0, chips - 1 - (count - 1) * apart), count, apart)
