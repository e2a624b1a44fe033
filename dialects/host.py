"""The host's view of a program: names of inputs and outputs, and sizes of outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from ..ir.support.errors import InputError
from ..ir.upstream import ModuleOp

DEFAULTS = {"arg_names": "arg", "result_names": "out"}
"""The attributes of a function that list names, each with the prefix of default names."""


def host_names(function: FuncOp, attribute: str, count: int) -> list[str]:
    """The names of a function's arguments or results; "arg0" or "out0" and so on by default.

    Raises InputError if the attribute is there and holds anything but as many names.

    Args:
        attribute: a key of DEFAULTS.
        count: how many values there are.
    """
    given = function.attributes.get(attribute) or function.properties.get(attribute)
    if given is None:
        return [f"{DEFAULTS[attribute]}{i}" for i in range(count)]
    listed = cast("ArrayAttr[Attribute]", given).data if isinstance(given, ArrayAttr) else ()
    names = [name.data for name in listed if isinstance(name, StringAttr)]
    if len(names) != count:
        raise InputError(f"@{function.sym_name.data}: {len(names)} {attribute}; need {count}")
    return names


OPTIONAL_INPUTS = "abele.optional_inputs"
"""The attribute of a module that lists inputs which have a value in the model."""


def set_optional_inputs(module: ModuleOp, names: Sequence[str]) -> None:
    """Record in a module which inputs of the model have a default value that was compiled in."""
    if names:
        module.attributes[OPTIONAL_INPUTS] = ArrayAttr(map(StringAttr, names))


def optional_inputs(module: ModuleOp) -> tuple[str, ...]:
    """The inputs of the model whose value was compiled in, so that the program does not take them.

    Raises InputError if the attribute holds anything but names.
    """
    given = module.attributes.get(OPTIONAL_INPUTS)
    if given is None:
        return ()
    listed = cast("ArrayAttr[Attribute]", given).data if isinstance(given, ArrayAttr) else (given,)
    names = [each.data for each in listed if isinstance(each, StringAttr)]
    if len(names) != len(listed):
        raise InputError(f'{OPTIONAL_INPUTS}: {given}; need ["name", ...]')
    return tuple(names)


RESULT_SIZES = "abele.result_sizes"
"""The attribute of a module that lists results whose size depends on values."""


@dataclass(frozen=True)
class ResultSize:
    """A result of which only the first elements along an axis exist; the rest is padding.

    Attributes:
        result: its name at the host.
        axis: counted from 0.
        size: the name of the result that holds the number of these elements.
    """

    result: str
    axis: int
    size: str


def set_result_sizes(module: ModuleOp, sizes: Sequence[ResultSize]) -> None:
    """Record in a module which of its results have a size that depends on values."""
    if sizes:
        listed = (
            ArrayAttr([StringAttr(s.result), IntegerAttr(s.axis, i64), StringAttr(s.size)])
            for s in sizes
        )
        module.attributes[RESULT_SIZES] = ArrayAttr(listed)


def result_sizes(module: ModuleOp) -> tuple[ResultSize, ...]:
    """The results of a module whose size depends on values.

    Raises InputError if the attribute holds anything but names, axes and names.
    """
    given = module.attributes.get(RESULT_SIZES)
    if given is None:
        return ()
    found: list[ResultSize] = []
    entries = cast("ArrayAttr[Attribute]", given).data if isinstance(given, ArrayAttr) else (given,)
    for entry in entries:
        parts = cast("ArrayAttr[Attribute]", entry).data if isinstance(entry, ArrayAttr) else ()
        match parts:
            case (StringAttr(), IntegerAttr(), StringAttr()):
                result, axis, size = parts
                found.append(ResultSize(result.data, axis.value.data, size.data))
            case _:
                raise InputError(f'{RESULT_SIZES}: {entry}; need ["result", axis, "size"]')
    return tuple(found)
