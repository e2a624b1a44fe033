"""The level of models of ONNX. Reading the table does not load the dialect, which needs onnx."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any, cast

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Attribute, Dialect, Operation

from ..ir.legality import ModuleFacts, holds, row
from ..ir.level import Level
from ..ir.upstream import Context, ModuleOp, VerifyException
from ..ir.xdsl.walk import operations

NAME = "onnx"

FUNCTION = f"{NAME}.function"
"""The operation that holds a function of a model."""

TRAINING = f"{NAME}.training"
"""The attribute of a module that holds what its model says about training."""

_HOME = "abele.dialects.onnx"


@holds("operands and attributes are those of the version that the model imports")
def of_its_version(op: Any, facts: ModuleFacts) -> None:
    """An operator has the operands and attributes of the version that its model imports."""
    check = getattr(op, "check_version", None)
    if check is not None:
        check()


@holds("one block")
def of_one_block(op: Any, facts: ModuleFacts) -> None:
    """The graph of a model has one block, which ends with what it returns."""
    if op.name == "func.func" and len(op.body.blocks) != 1:
        raise VerifyException(f"{len(op.body.blocks)} blocks; need one")


ONNX_LEVEL = Level(
    NAME,
    (
        row("builtin.module func.return"),
        row("func.func", of_one_block),
        row(NAME, of_its_version),
    ),
    meaning="What is computed, as a file of ONNX writes it: nothing of the file is lost.",
)
"""Where a module is that holds a file of ONNX, above all levels."""


def load_onnx() -> Dialect:
    """The dialect. It imports onnx."""
    return import_module(_HOME).ONNX


def register_onnx(context: Context) -> None:
    """Let texts and rules have operations of ONNX. The dialect is loaded when one names it."""
    if NAME not in set(context.registered_dialect_names):
        context.register_dialect(NAME, partial(load_onnx))


def has_onnx(module: ModuleOp) -> bool:
    """Whether a module has operations of ONNX, or says that it is a model of ONNX."""
    if any(name.startswith("onnx.") for name in module.attributes):
        return True
    return any(op.name.partition(".")[0] == NAME for op in operations(module))


def uncalled_functions(module: ModuleOp) -> list[Operation]:
    """The functions of a model that neither its graph nor a called function calls.

    None of a model with training information, whose graphs may call them.
    """
    functions: dict[tuple[str, str], list[Operation]] = {}
    others: list[Operation] = []
    for op in module.body.block.ops:
        if op.name == FUNCTION:
            fields = cast("DictionaryAttr", op.properties["fields"]).data
            functions.setdefault(
                (_text(fields.get("domain")), _text(fields.get("name"))), []
            ).append(op)
        else:
            others.append(op)
    if not functions or TRAINING in module.attributes:
        return []
    pending = others
    while pending:
        for op in pending.pop().walk():
            pending += functions.pop(_operator(op), ())
    return [op for some in functions.values() for op in some]


def _operator(op: Operation) -> tuple[str, str]:
    """The domain and the name of what a node computes."""
    definition = getattr(op, "DEFINITION", None)
    if definition is not None:
        return definition.domain, definition.op_type
    given = op.properties
    return _text(given.get("domain")), _text(given.get("op_type"))


def _text(attribute: Attribute | None) -> str:
    text = attribute.data if isinstance(attribute, StringAttr) else ""
    return "" if text == "ai.onnx" else text
