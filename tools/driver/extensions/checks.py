"""Checks of the passes and operations that users define."""

from __future__ import annotations

import re
from inspect import get_annotations, isabstract

from xdsl.ir import Dialect

from ....dialects.nn import ElementwiseOp
from ....dialects.scalar_functions import FUNCTIONS
from ....ir.pass_levels import DECLARATIONS, declared_levels
from ....ir.pass_manager import check_options
from ....ir.support.errors import InputError
from ....ir.upstream import ModulePass

PASS_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def check_operations(dialect: Dialect, owner: str) -> None:
    """Raise InputError for an operation without a required method or scalar function."""
    for op in dialect.operations:
        if isabstract(op):
            missing = ", ".join(sorted(op.__abstractmethods__))
            raise InputError(f"{owner}: operation {op.name} of class {op.__name__}: need {missing}")
        # A class that overrides `function` may choose its function for each operation.
        named_after = issubclass(op, ElementwiseOp) and op.function is ElementwiseOp.function
        name = op.name.partition(".")[2]
        if named_after and name not in FUNCTIONS:
            raise InputError(
                f"{owner}: operation {op.name} of class {op.__name__} applies the scalar function "
                f"{name!r}, which does not exist; need ScalarFunction({name!r}, ...)"
            )


def check_pass(each: type[ModulePass], owner: str) -> None:
    """Raise InputError unless a pipeline can name a pass and set its options."""
    if not PASS_NAME.fullmatch(each.name):
        raise InputError(
            f"{owner}: pass {each.name!r} of class {each.__name__}; need a name of lower-case "
            "letters, digits and dashes, such as 'fuse-add-relu'"
        )
    if isabstract(each):
        raise InputError(f"{owner}: pass '{each.name}': need a method apply(self, ctx, op)")
    fields = [name for name in get_annotations(each) if name not in ("name", *DECLARATIONS)]
    if fields and "__dataclass_fields__" not in vars(each):
        raise InputError(
            f"{owner}: pass '{each.name}': {fields[0]} is not an option yet; need "
            f"@dataclass(frozen=True) above class {each.__name__}"
        )
    try:
        declared_levels(each)
        check_options(each)
    except NameError as error:
        raise InputError(f"{owner}: pass '{each.name}': the type of an option: {error}") from None
    except InputError as error:
        raise InputError(f"{owner}: {error}") from None
