"""What every export of nn does: the patterns that dialects share, and the run over a module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from xdsl.dialects import func

from ...dialects import control, nn
from ...dialects.structured import Movement, Reinterpretation, Structured
from ...ir.conversion import Patterns, replace_body
from ...ir.upstream import Context, ModuleOp
from ..decompose import Decompose
from ..unfuse import Unfuse
from . import operators, program

P = TypeVar("P", bound=program.ProgramExport)


def export_patterns(
    repeat: Callable[[Any, P], None],
    while_: Callable[[Any, P], None],
    branch: Callable[[Any, P], None],
) -> Patterns[P]:
    """What converts each kind of operation. Terminators are converted with their regions.

    Args:
        repeat, while_, branch: what converts the loops and the branch of the dialect control.
    """
    return Patterns(
        (nn.ConcatOp, program.converted_concat),
        (Structured, operators.converted_structured),
        (Movement, operators.converted_movement),
        (Reinterpretation, operators.converted_reinterpretation),
        (nn.StateOp, program.converted_state),
        (nn.LoadOp, program.converted_load),
        (nn.StoreOp, program.converted_store),
        (nn.ConstantOp, program.converted_constant),
        (func.FuncOp, program.converted_function),
        (func.CallOp, program.converted_call),
        (control.RepeatOp, repeat),
        (control.WhileOp, while_),
        (control.IfOp, branch),
    )


def export(
    ctx: Context,
    module: ModuleOp,
    make: Callable[[program.States], program.ProgramExport],
    *,
    arguments: bool,
) -> None:
    """Replace a module of nn by what it becomes in another dialect.

    Composites are decomposed and groups dissolved before. Raises InputError for operations that are
    not covered, all at once.

    Args:
        make: what makes the empty program of the dialect.
        arguments: whether states that the program only reads are arguments of @main too.
    """
    Unfuse().apply(ctx, module)
    Decompose().apply(ctx, module)
    new = make(program.States.of(module, all_are_arguments=arguments))
    for each in module.body.block.ops:
        new.convert(each)
    new.finish()
    replace_body(module, new.block)
