"""Arguments of a program that it holds as states instead: its weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp

from ....dialects import nn
from ....dialects.dtypes import numpy_dtype
from ....dialects.host import host_names
from ....ir.provenance import named
from ....ir.support.arrays import Array
from ....ir.support.errors import InputError
from ....ir.upstream import ModuleOp
from ..building import Names


def hold_weights(
    module: ModuleOp, main: FuncOp, values: Mapping[str, Array], given: Iterable[str], place: str
) -> None:
    """Replace arguments of @main by states of their names.

    Raises InputError for a value of another type than its argument.

    Args:
        values: the values of arguments, by name.
        given: the names of further arguments that become states. They begin with zeros, and other
            parts of abele give them their values.
        place: the program's name in messages.
    """
    block = main.body.block
    names = host_names(main, "arg_names", len(block.args))
    wanted = {*values, *given}
    held = [(name, arg) for name, arg in zip(names, block.args, strict=True) if name in wanted]
    if not held or block.first_op is None or module.body.block.first_op is None:
        return
    functions = (op.sym_name.data for op in module.ops if isinstance(op, FuncOp))
    taken, first, top = Names({*functions}), block.first_op, module.body.block.first_op
    for name, argument in held:
        dtype = numpy_dtype(nn.element_of(argument))
        shape = nn.shape_of(argument)
        array = values.get(name, np.broadcast_to(np.zeros((), dtype), shape))
        if (array.shape, array.dtype) != (shape, dtype):
            raise InputError(
                f"{place}: weight {name!r} is {array.dtype.name}{list(array.shape)}, and its "
                f"argument {dtype.name}{list(shape)}"
            )
        symbol = taken.unique(name)
        state = nn.StateOp(symbol, array)
        load = nn.LoadOp(symbol, nn.tensor_of(argument))
        state.location = load.location = named(name)
        module.body.block.insert_op_before(state, top)
        block.insert_op_before(load, first)
        argument.replace_all_uses_with(load.result)
        block.erase_arg(argument)
    left = [name for name in names if name not in wanted]
    main.attributes["arg_names"] = ArrayAttr(map(StringAttr, left))
    main.update_function_type()
