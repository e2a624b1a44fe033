"""The entry, inputs, states and results of a program that is differentiated."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue

from ...dialects import nn
from ...dialects.host import host_names
from ...dialects.nn.group import GROUP
from ...ir.edit import Edit
from ...ir.rewriting import may_rewrite
from ...ir.support.errors import InputError
from ...ir.support.suggestions import suggestion
from ...ir.upstream import InsertPoint, ModuleOp
from ...ir.well_known import ENTRY
from ..decompose import replace_by_parts
from .compute_steps import has_steps, replace_by_steps
from .reverse import first_composites
from .way import is_float


def entry_of(module: ModuleOp) -> FuncOp | None:
    """The function at which a run begins; None if there is none with a body."""
    for op in module.body.block.ops:
        if isinstance(op, FuncOp) and op.sym_name.data == ENTRY and not op.is_declaration:
            return op
    return None


def end_of(main: FuncOp) -> ReturnOp:
    """The operation that ends a function."""
    end = main.body.block.last_op
    assert isinstance(end, ReturnOp)
    return end


def inputs_of(main: FuncOp) -> dict[str, SSAValue]:
    """The arguments of a function by the names that the host knows."""
    names = host_names(main, "arg_names", len(main.args))
    return dict(zip(names, main.args, strict=True))


def outputs_of(main: FuncOp) -> dict[str, SSAValue]:
    """The results of a function by the names that the host knows."""
    values = end_of(main).operands
    names = host_names(main, "result_names", len(values))
    return dict(zip(names, values, strict=True))


def states_of(main: FuncOp) -> dict[str, list[SSAValue]]:
    """The values that a function loads from each state of floats."""
    found: dict[str, list[SSAValue]] = {}
    for op in main.body.block.ops:
        if isinstance(op, nn.LoadOp) and is_float(op.result):
            found.setdefault(op.state.string_value(), []).append(op.result)
    return found


def chosen(what: str, name: str, names: Collection[str]) -> None:
    """Raise InputError unless a name is one of `names`.

    Args:
        what: the kind of name, for the message.
    """
    if name not in names:
        listed = f"there are {', '.join(names)}"
        raise InputError(f"no {what} {name!r}{suggestion(name, names, listed)}")


def drop_groups(module: ModuleOp) -> None:
    """Remove the groups of operations, because values inside a group cannot be read."""
    for op in module.walk():
        op.attributes.pop(GROUP, None)


def decompose_on_the_way(
    main: FuncOp, start: Sequence[SSAValue], end: Sequence[SSAValue]
) -> dict[SSAValue, SSAValue]:
    """Decompose the operations between `start` and `end` that have no rule of their own.

    Returns the replacement of each value of `end` that was replaced.
    """
    replaced: dict[SSAValue, SSAValue] = {}
    end = list(end)
    while found := first_composites(main.body.block, start, end):
        for op in found:
            if not may_rewrite():
                return replaced
            old = list(op.results)
            _, new = replace_by_steps(op) if has_steps(op) else replace_by_parts(op)
            for before, after in zip(old, new, strict=True):
                if before in end:
                    end[end.index(before)] = replaced[before] = after
    return replaced


def rename_results(main: FuncOp, results: Mapping[str, SSAValue], edit: Edit) -> None:
    """Let a function return these values, by name."""
    end = end_of(main)
    returned = ReturnOp(*results.values())
    returned.location = end.location
    edit.insert(returned, InsertPoint.before(end))
    edit.erase(end)
    main.update_function_type()
    main.properties.pop("result_names", None)
    main.attributes["result_names"] = ArrayAttr(map(StringAttr, results))
