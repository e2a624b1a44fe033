"""Find the definitions in a user's module."""

from __future__ import annotations

import ast
from types import ModuleType

from xdsl.ir import Dialect, Operation

from ....backends.codelets.scalar import ScalarFunction
from ....backends.codelets.users import UsersCodelet
from ....backends.fabrics.fabric import Fabric
from ....backends.prices.contractions.methods import Method
from ....backends.target import Target
from ....dialects.model_calls import ModelCall
from ....ir.rules import PythonRule, library
from ....ir.support.errors import InputError
from ....ir.upstream import ModulePass
from ...importers.front_end import FrontEnd
from .added_level import AddedLevel
from .extension import Extension, OnnxOperator

SOUGHT = (
    "subclasses of ModulePass with a name and of Fabric with a kind, values of Dialect, "
    "ScalarFunction, Method, Target, FrontEnd, AddedLevel, ModelCall and Extension, and functions "
    "with @codelet, @rewrite, @onnx_operator, @guard, @function and @op_class"
)
"""The definitions that abele looks for in a module."""


def definitions(module: ModuleType, text: bytes, owner: str) -> Extension:
    """The definitions of a module.

    Raises InputError for a module without definitions, and for an operation that belongs to no
    dialect.

    Args:
        text: the module's source; names that it only imports are not its definitions.
    """
    names = _assigned(text)
    here = [value for name, value in vars(module).items() if name in names or not text]
    classes = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__
    ]
    found = Extension(
        [c for c in classes if issubclass(c, ModulePass) and isinstance(vars(c).get("name"), str)],
        [value for value in here if isinstance(value, Dialect)],
        [value for value in here if isinstance(value, ScalarFunction)],
        [value for value in here if isinstance(value, Target)],
        [value for value in here if isinstance(value, OnnxOperator)],
        [value for value in here if isinstance(value, PythonRule)],
        [c for c in classes if issubclass(c, Fabric) and vars(c).get("kind")],
        [value for value in here if isinstance(value, Method)],
        [value for value in here if isinstance(value, FrontEnd)],
        [value for value in here if isinstance(value, AddedLevel)],
        [value for value in here if isinstance(value, ModelCall)],
        [value for value in here if isinstance(value, UsersCodelet)],
    )
    found += sum((value for value in here if isinstance(value, Extension)), Extension())
    if found == Extension() and not _has_rule_functions(module):
        raise InputError(f"{owner}: no definitions for abele; looked for {SOUGHT}")
    known = {op for dialect in found.dialects for op in dialect.operations}
    for op in classes:
        if issubclass(op, Operation) and "." in str(vars(op).get("name", "")) and op not in known:
            raise InputError(
                f"{owner}: operation {op.name} of class {op.__name__} is in no dialect; need "
                f"Dialect({op.name.partition('.')[0]!r}, [{op.__name__}, ...], [])"
            )
    return found


def _has_rule_functions(module: ModuleType) -> bool:
    """Whether a module defines functions for rules; its decorators have registered them."""
    calls = [*(each.call for each in library.FUNCTIONS.values()), *library.CLASSES.values()]
    return any(call.__module__ == module.__name__ for call in calls)


def _assigned(text: bytes) -> frozenset[str]:
    """The names that a module's source defines, other than by importing them."""
    names: set[str] = set()
    pending: list[ast.AST] = list(ast.parse(text).body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif not isinstance(node, ast.ClassDef | ast.Lambda):
            pending += ast.iter_child_nodes(node)
    return frozenset(names)
