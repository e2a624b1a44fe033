"""Load states in the functions that read them, instead of handing them over at each call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, FunctionType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute

from ..dialects import nn
from ..dialects.control import run_around
from ..dialects.levels import NN
from ..dialects.placement import CHIPS
from ..ir.edit import Edit, source_at
from ..ir.provenance import locate
from ..ir.rewriting import may_rewrite
from ..ir.upstream import Context, InsertPoint, ModuleOp, ModulePass
from ..ir.well_known import ENTRY
from .analysis.calls import calls_of


@dataclass(frozen=True)
class SinkLoads(ModulePass):
    """Load a state, or a constant, in a function that every call gives it. nn -> nn.

    A load gives the value that the state had when the run began, wherever it is. A parameter is a
    variable to which each call copies its argument, so a weight that a function loads itself is
    never moved. A constant with other readers stays, unless the function lies on chips of its own.

        %w = nn.load @w                                func.call @layer(%x)
        func.call @layer(%x, %w)                       ...
        ...                                            func.func @layer(%x) {
        func.func @layer(%x, %w) {                       %w = nn.load @w
          nn.matmul %x, %w                               nn.matmul %x, %w
    """

    name = "sink-loads"
    takes = NN
    skips_other_levels = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        functions = {
            each.sym_name.data: each
            for each in op.body.block.ops
            if isinstance(each, FuncOp) and each.body.blocks
        }
        calls = calls_of(op)
        # A function that gets a state from its caller may itself hand it over.
        changed = True
        while changed:
            changed = False
            for name, function in functions.items():
                if name != ENTRY and name in calls and may_rewrite():
                    changed |= _sink(function, calls[name])


def _sink(function: FuncOp, calls: Sequence[CallOp]) -> bool:
    """Load in a function what all calls give it; whether there was anything."""
    if any(run_around(call) is not None for call in calls):
        return False
    block = function.body.block
    given = {
        i: source
        for i in range(len(block.args))
        if (source := _source(function, [call.arguments[i].owner for call in calls], calls))
    }
    if not given:
        return False
    with Edit(SINK, function) as edit:
        first = block.first_op
        assert first is not None
        for i, source in given.items():
            inside = source.clone()
            locate(inside, source)
            edit.insert(inside, InsertPoint.before(first))
            block.args[i].replace_all_uses_with(inside.results[0])
        kept = [i for i in range(len(block.args)) if i not in given]
        for i in reversed(given):
            block.erase_arg(block.args[i])
        types = FunctionType.from_lists(
            [arg.type for arg in block.args], function.function_type.outputs.data
        )
        function.properties["function_type"] = types
        _keep_names(function, kept)
        for call in calls:
            call.operands = [call.arguments[i] for i in kept]
            edit.modified(call)
        edit.modified(function)
    return True


def _source(
    function: FuncOp, owners: Sequence[object], calls: Sequence[CallOp]
) -> nn.LoadOp | nn.ConstantOp | None:
    """What makes the value that all calls give for a parameter, if the function may make it."""
    first = owners[0]
    if isinstance(first, nn.LoadOp):
        same = all(isinstance(each, nn.LoadOp) and each.state == first.state for each in owners)
        return first if same and run_around(first) is None else None
    if not isinstance(first, nn.ConstantOp) or any(each is not first for each in owners):
        return None
    others = any(use.operation not in calls for use in first.result.uses)
    return None if others and CHIPS not in function.attributes else first


def _keep_names(function: FuncOp, kept: Sequence[int]) -> None:
    """Remove the names of the parameters that are gone."""
    for held in (function.attributes, function.properties):
        names = held.get("arg_names")
        if isinstance(names, ArrayAttr):
            listed = cast("ArrayAttr[Attribute]", names).data
            held["arg_names"] = ArrayAttr([listed[i] for i in kept if i < len(listed)])


SINK = source_at("load it where it is read", SinkLoads.apply)
