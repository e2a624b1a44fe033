"""Cases that importers of ONNX operators refuse, read from their source."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module
from types import ModuleType
from typing import cast

from ..importers.onnx.node import Importer

IMPORTERS = "abele.tools.importers.onnx"
"""The package in which calls of functions are followed."""

KNOWN_BY = {"array": 1, "array_integers": 1, "array_scalar": 1, "parameter": 0}
"""The methods of a node that need an operand whose value is known at import, with the position of
the argument that names the operand.
"""

GAP = "..."
"""The placeholder for a part of a message that depends on the node."""

Definition = ast.FunctionDef | ast.Lambda


@dataclass(frozen=True)
class Guards:
    """The cases that an importer refuses.

    Attributes:
        unsupported: messages.
        known: operands whose values it reads when a model is compiled.
    """

    unsupported: tuple[str, ...]
    known: tuple[str, ...]


def guards_of(importer: Importer) -> Guards:
    """The cases that an importer, and the functions of importers that it may call, refuse."""
    unsupported: dict[str, None] = {}
    known: dict[str, None] = {}
    for definition in _reached(importer):
        for call in (each for each in ast.walk(definition) if isinstance(each, ast.Call)):
            if not isinstance(call.func, ast.Attribute):
                continue
            texts = [_text(argument) for argument in call.args]
            if call.func.attr == "unsupported" and len(texts) == 2:
                unsupported[f"{texts[0]} is not supported, {texts[1]}"] = None
            named = KNOWN_BY.get(call.func.attr, len(texts))
            if named < len(texts) and texts[named] != GAP:
                known[texts[named]] = None
    return Guards(tuple(unsupported), tuple(known))


def _text(node: ast.expr) -> str:
    """A text, with placeholders for the parts that depend on the node."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = (_text(each) if isinstance(each, ast.Constant) else GAP for each in node.values)
        return "".join(parts)
    return GAP


def _reached(importer: Importer) -> Iterator[Definition]:
    """The definition of an importer, and of all functions that it may call, each once."""
    function = importer
    while isinstance(function, partial):
        function = cast("partial[object]", function).func
    module = import_module(function.__module__)
    pending = [(module, each) for each in _definitions(module, function)]
    # A closure calls functions that are arguments of its maker.
    for cell in getattr(function, "__closure__", None) or ():
        inner = cell.cell_contents
        if callable(inner) and _is_ours(inner):
            made_in = import_module(inner.__module__)
            pending += [(made_in, each) for each in _definitions(made_in, inner)]
    seen: set[tuple[str, int]] = set()
    while pending:
        module, definition = pending.pop()
        if (module.__name__, definition.lineno) in seen:
            continue
        seen.add((module.__name__, definition.lineno))
        yield definition
        names = {each.id for each in ast.walk(definition) if isinstance(each, ast.Name)}
        names |= {each.attr for each in ast.walk(definition) if isinstance(each, ast.Attribute)}
        for name in sorted(names):
            value = getattr(module, name, None)
            if inspect.isfunction(value) and _is_ours(value):
                home = import_module(value.__module__)
                pending += [(home, each) for each in _definitions(home, value)]


def _is_ours(function: object) -> bool:
    home = getattr(function, "__module__", "")
    return home.startswith(f"{IMPORTERS}.") and not home.endswith((".node", ".reader"))


def _definitions(module: ModuleType, function: object) -> list[Definition]:
    """The definition of a function. If a call made the function, also the definition of its
    maker."""
    name = getattr(function, "__qualname__", "").split(".")[0]
    functions, lambdas = _parsed(module)
    if name in functions:
        return [functions[name]]
    code = getattr(function, "__code__", None)
    return [each for each in lambdas if code is not None and each.lineno == code.co_firstlineno]


@lru_cache(maxsize=64)
def _parsed(module: ModuleType) -> tuple[dict[str, ast.FunctionDef], list[ast.Lambda]]:
    """The functions at the top level of a module by name, and all lambdas."""
    tree = ast.parse(inspect.getsource(module))
    functions = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
    return functions, [each for each in ast.walk(tree) if isinstance(each, ast.Lambda)]
