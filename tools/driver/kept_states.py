"""Keep values on the device from one run to the next, instead of passing them through the host."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp

from ...backends.reference import tensor_kind
from ...dialects import nn
from ...dialects.host import host_names
from ...dialects.levels import NN, level_of
from ...ir.support.errors import InputError
from ...ir.support.suggestions import suggestion
from ...ir.upstream import ModuleOp
from .program import entry


def keep_states(module: ModuleOp, kept: Mapping[str, str], path: str) -> None:
    """Turn inputs of a program of nn into states that hold an output of the run before.

    Raises InputError for names that the program does not have, and for types that differ.

    Such an input and its output are no longer passed between host and device. The first run finds
    zeros. One output can feed several inputs.

    Args:
        kept: for each input, the output that it receives in the next run.
    """
    if not kept:
        return
    if level_of(module) != NN:
        raise InputError(f"{path}: --keep: the program is not at nn, where its states are written")
    main = entry(module, path)
    end = main.body.block.last_op
    assert isinstance(end, ReturnOp)
    inputs = host_names(main, "arg_names", len(main.args))
    outputs = host_names(main, "result_names", len(end.operands))
    for given, produced in kept.items():
        for name, names, what in ((given, inputs, "input"), (produced, outputs, "output")):
            if name not in names:
                raise InputError(
                    f"{path}: --keep {given}={produced}: no {what} {name!r}"
                    f"{suggestion(name, names)}"
                )
        before, after = main.args[inputs.index(given)], end.operands[outputs.index(produced)]
        if before.type != after.type:
            raise InputError(
                f"{path}: --keep {given}={produced}: the input is {before.type} and the output "
                f"{after.type}; need one type"
            )
    _replace(module, main, end, kept, inputs, outputs)


def _replace(
    module: ModuleOp,
    main: FuncOp,
    end: ReturnOp,
    kept: Mapping[str, str],
    inputs: list[str],
    outputs: list[str],
) -> None:
    block = main.body.block
    first = block.first_op
    assert first is not None
    taken = {op.sym_name.data for op in module.ops if isinstance(op, nn.StateOp | FuncOp)}
    states: list[nn.StateOp] = []
    for given, produced in kept.items():
        argument = block.args[inputs.index(given)]
        shape, dtype = tensor_kind(argument.type)
        symbol = given
        while symbol in taken:
            symbol += "_kept"
        taken.add(symbol)
        state = nn.StateOp(symbol, np.zeros(shape, dtype))
        load = nn.LoadOp(symbol, nn.tensor(shape, state.elements.element_type))
        store = nn.StoreOp(end.operands[outputs.index(produced)], symbol)
        for op in (state, load, store):
            op.location = argument.location
        argument.replace_all_uses_with(load.result)
        block.insert_op_before(load, first)
        block.insert_op_before(store, end)
        states.append(state)
    for given in kept:
        block.erase_arg(block.args[inputs.index(given)])
        inputs.remove(given)
    produced = set(kept.values())
    results = [v for v, name in zip(end.operands, outputs, strict=True) if name not in produced]
    outputs = [name for name in outputs if name not in produced]
    returned = ReturnOp(*results)
    returned.location = end.location
    block.insert_op_before(returned, end)
    block.erase_op(end)
    main.update_function_type()
    for attribute, names in (("arg_names", inputs), ("result_names", outputs)):
        main.properties.pop(attribute, None)
        main.attributes[attribute] = ArrayAttr(map(StringAttr, names))
    body = module.body.block
    if body.first_op is None:
        return
    body.insert_ops_before(states, body.first_op)
