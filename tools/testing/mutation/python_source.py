"""The Python source of a pass: its modules, the places to change in them, and changed copies."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, cast

OWN = "abele."


@dataclass(frozen=True)
class Slot:
    """The place of a statement or expression in a syntax tree.

    Attributes:
        node: the statement or expression.
        owner: its parent node.
        field: the field of the parent.
        index: the position in that field; -1 if the field is not a list.
        function: the innermost function that contains the node.
        statement: the innermost statement that contains the node, or the node itself.
    """

    node: ast.stmt | ast.expr
    owner: ast.AST
    field: str
    index: int
    function: ast.FunctionDef | ast.AsyncFunctionDef
    statement: ast.stmt

    def replace(self, new: ast.AST) -> None:
        """Replace the node in the tree."""
        ast.copy_location(new, self.node)
        if self.index < 0:
            setattr(self.owner, self.field, new)
        else:
            getattr(self.owner, self.field)[self.index] = new

    @property
    def lines(self) -> range:
        """The lines of the node. For a statement with a body, only the lines before the body."""
        first, last = self.node.lineno, self.node.end_lineno or self.node.lineno
        if isinstance(self.node, ast.If | ast.For | ast.While | ast.With | ast.Try):
            last = max(first, self.node.body[0].lineno - 1)
        return range(first, last + 1)


@dataclass(frozen=True)
class PythonFile:
    """The source of a module.

    Attributes:
        name: the module's full name.
    """

    name: str
    path: Path
    tree: ast.Module

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """Every statement and expression in its functions."""
        return tuple(_slots(self.tree))

    def with_slot(self, slot: int, new: ast.AST) -> ast.Module:
        """A copy of the tree with a new node in one slot."""
        tree = deepcopy(self.tree)
        list(_slots(tree))[slot].replace(new)
        return ast.fix_missing_locations(tree)

    def imported(self) -> Iterator[str]:
        """The full names of all modules that the source may import.

        For `from a import b`, both a and a.b are included.
        """
        package = sys.modules[self.name].__package__ or ""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom):
                parts = package.split(".")
                base = ".".join(parts[: len(parts) + 1 - node.level]) if node.level else ""
                module = ".".join(filter(None, (base, node.module)))
                yield module
                yield from (f"{module}.{each.name}" for each in node.names)
            elif isinstance(node, ast.Import):
                yield from (each.name for each in node.names)


def files_of(module: str) -> dict[str, PythonFile]:
    """The source files of a pass by module name: its own module, and the modules that it imports.

    Imports are followed for abele's own modules only, and only within the same top-level package,
    such as passes. Every module must be loaded already. The module itself comes first. Empty if the
    module has no file.
    """
    room = ".".join(module.split(".")[:2]) + "." if module.startswith(OWN) else ""
    found: dict[str, PythonFile] = {}
    pending = [module]
    while pending:
        name = pending.pop(0)
        path = getattr(sys.modules.get(name), "__file__", None)
        if name in found or path is None or not path.endswith(".py"):
            continue
        place = Path(path)
        found[name] = PythonFile(name, place, ast.parse(place.read_bytes()))
        if room:
            pending += [each for each in found[name].imported() if each.startswith(room)]
    return found


def copy_of(
    module: str, files: Mapping[str, PythonFile], changed: str, tree: ast.Module
) -> ModuleType:
    """A copy of a module with a changed file: its own file, or that of a module that it imports.

    Modules between the two are copied too. The loaded modules do not change, and imports elsewhere
    do not find the copies.
    """
    needed = _importers_of(changed, files)
    copies: dict[str, ModuleType] = {}
    for name in _dependency_order(module, needed, files):
        text = tree if name == changed else files[name].tree
        copies[name] = _executed_copy(sys.modules[name], text, files[name].path, copies)
    return copies[module]


def _importers_of(changed: str, files: Mapping[str, PythonFile]) -> set[str]:
    """A module, and all modules that import it, directly or through others."""
    found = {changed}
    while True:
        more = {
            name
            for name, file in files.items()
            if name not in found and not found.isdisjoint(file.imported())
        }
        if not more:
            return found
        found |= more


def _dependency_order(
    module: str, needed: set[str], files: Mapping[str, PythonFile], seen: tuple[str, ...] = ()
) -> list[str]:
    """The modules to execute, each one after the modules that it imports."""
    order: list[str] = []
    for name in dict.fromkeys(files[module].imported()):
        if name in needed and name in files and name not in seen:
            inner = _dependency_order(name, needed, files, (*seen, module))
            order += [each for each in inner if each not in order]
    return [*order, module]


def _executed_copy(
    original: ModuleType, tree: ast.Module, path: Path, copies: Mapping[str, ModuleType]
) -> ModuleType:
    """A module made by executing a tree. Its imports find the copies first."""
    made = ModuleType(original.__name__, original.__doc__)
    made.__file__, made.__package__ = str(path), original.__package__

    def importing(name: str, *rest: Any) -> ModuleType:
        found = builtins.__import__(name, *rest)
        wanted = rest[2] if len(rest) > 2 else None
        if not wanted:
            return found
        if found.__name__ in copies:
            return copies[found.__name__]
        inner = {
            name.rpartition(".")[2]: copy
            for name, copy in copies.items()
            if name.rpartition(".")[0] == found.__name__
        }
        if inner.keys().isdisjoint(wanted):
            return found
        # from . import module: return the package, with the copies in place of the originals.
        package = ModuleType(found.__name__)
        vars(package).update({**vars(found), **inner})
        return package

    vars(made)["__builtins__"] = {**vars(builtins), "__import__": importing}
    exec(compile(tree, str(path), "exec", dont_inherit=True), vars(made))
    return made


_NOT_MUTATED = (ast.Raise, ast.Assert, ast.JoinedStr, ast.arguments, ast.Import, ast.ImportFrom)
"""Nodes with messages, or nodes without influence on a pass's output."""

_FIELDS_NOT_MUTATED = ("annotation", "returns", "decorator_list", "type_comment")


def _slots(tree: ast.Module) -> Iterator[Slot]:
    yield from _slots_below(tree, None, None)


def _slots_below(
    owner: ast.AST,
    function: ast.FunctionDef | ast.AsyncFunctionDef | None,
    statement: ast.stmt | None,
) -> Iterator[Slot]:
    if isinstance(owner, ast.FunctionDef | ast.AsyncFunctionDef):
        function = owner
    for field, value in ast.iter_fields(owner):
        if field in _FIELDS_NOT_MUTATED:
            continue
        children = cast("list[object]", value) if isinstance(value, list) else [value]
        for index, child in enumerate(children):
            if not isinstance(child, ast.AST) or isinstance(child, _NOT_MUTATED):
                continue
            if _is_docstring(child) or (isinstance(owner, ast.Subscript) and _names_a_type(owner)):
                continue
            inner = child if isinstance(child, ast.stmt) else statement
            if function is not None and isinstance(child, ast.stmt | ast.expr):
                assert inner is not None
                at = index if isinstance(value, list) else -1
                yield Slot(child, owner, field, at, function, inner)
            yield from _slots_below(child, function, inner)


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


_TYPES = ("dict", "list", "set", "tuple", "frozenset", "type")


def _names_a_type(node: ast.Subscript) -> bool:
    """Whether the brackets contain types, as in set[str]()."""
    name = node.value.attr if isinstance(node.value, ast.Attribute) else None
    name = node.value.id if isinstance(node.value, ast.Name) else name
    return name is not None and (name in _TYPES or name[:1].isupper())
