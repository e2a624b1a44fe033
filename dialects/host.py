"""By which names the host knows a program's inputs and outputs."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from ..ir.errors import InputError

DEFAULTS = {"arg_names": "arg", "result_names": "out"}
"""The attributes of a function that hold names, and what values without one are called."""


def host_names(function: FuncOp, attribute: str, count: int) -> list[str]:
    """The names of a function's arguments or results; "arg0" or "out0" and so on by default.

    attribute: a key of DEFAULTS. count: how many values there are.
    Raises InputError if the attribute is there and holds anything but as many names.
    """
    given = function.attributes.get(attribute) or function.properties.get(attribute)
    if given is None:
        return [f"{DEFAULTS[attribute]}{i}" for i in range(count)]
    listed = cast("ArrayAttr[Attribute]", given).data if isinstance(given, ArrayAttr) else ()
    names = [name.data for name in listed if isinstance(name, StringAttr)]
    if len(names) != count:
        raise InputError(f"@{function.sym_name.data}: {len(names)} {attribute}; need {count}")
    return names
