"""Complex arguments and results of the function that a run begins in."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ...dialects import stablehlo
from ...dialects.host import host_names
from ...dialects.source_types import is_complex, part_type
from ...ir.support.errors import InputError

REAL, IMAG = ".real", ".imag"
"""What the names of the parts of an argument or a result end with."""


def real_signature(main: FuncOp) -> None:
    """Let a function take and return real and imaginary parts instead of complex numbers.

    The parts of `x` are the arguments `x.real` and `x.imag`, one after the other. Operations at the
    beginning of the function make `x` of them, and those at its end take results apart.

    Raises InputError if the function has something else of such a name.
    """
    block, end = main.body.block, main.body.block.last_op
    assert end is not None
    names = {
        "arg_names": _named(main, "arg_names", block.args),
        "result_names": _named(main, "result_names", end.operands),
    }
    if not any(map(is_complex, (*block.args, *end.operands))):
        return
    for argument in tuple(block.args):
        if is_complex(argument):
            parts = [
                block.insert_arg(part_type(argument), argument.index + 1 + i) for i in range(2)
            ]
            made = stablehlo.ComplexOp(*parts)
            for each in (*parts, made):
                each.location = argument.location
            block.insert_op_before(made, block.first_op or end)
            argument.replace_all_uses_with(made.result)
            block.erase_arg(argument)
    returned: list[SSAValue] = []
    for value in end.operands:
        if not is_complex(value):
            returned.append(value)
            continue
        for part in (stablehlo.RealOp(value), stablehlo.ImagOp(value)):
            part.location = end.location
            block.insert_op_before(part, end)
            returned.append(part.result)
    end.operands = returned
    main.update_function_type()
    for attribute, found in names.items():
        if attribute in main.attributes or attribute in main.properties:
            held = main.attributes if attribute in main.attributes else main.properties
            held[attribute] = ArrayAttr(map(StringAttr, found))


def _named(main: FuncOp, attribute: str, values: Sequence[SSAValue]) -> list[str]:
    """The names of arguments or results, with those of both parts for each that is complex."""
    given = list(zip(host_names(main, attribute, len(values)), values, strict=True))
    parts = [name + end for name, value in given if is_complex(value) for end in (REAL, IMAG)]
    for name, value in given:
        if not is_complex(value) and name in parts:
            raise InputError(f"{attribute}: {name} is also the name of a part of a complex number")
    return [
        name + end
        for name, value in given
        for end in ((REAL, IMAG) if is_complex(value) else ("",))
    ]
