"""Mistakes in the Python of a pass, where programs go through it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import cast

from ....ir.rules import PythonRule, RulesPass, bind_python_rules
from ....ir.upstream import ModulePass
from .mutant import Mutant, Numbers
from .python_classes import PYTHON_CLASSES
from .python_source import PythonFile, Slot, copy_of, files_of
from .reached import reached_lines
from .rule_mutants import with_rules

LONGEST = 72
"""Letters of a piece of code that are shown."""


@dataclass(frozen=True)
class PythonMutants:
    """The mistakes that can be planted in a pass's Python.

    reached, not_reached: how many of its lines with code programs go through, and do not.
    """

    mutants: tuple[Mutant, ...]
    reached: int = 0
    not_reached: int = 0


def python_mutants(tested: ModulePass, run: Callable[[], None]) -> PythonMutants:
    """All mistakes in the Python of a pass, in the order of its text.

    run: runs the pass on a few programs. None are planted where these do not go.
    """
    module = _module_of(tested)
    files = files_of(module) if module else {}
    if not files:
        return PythonMutants(())
    lines = reached_lines(run, [str(file.path) for file in files.values()])
    numbers, found, total, gone = Numbers(), list[Mutant](), 0, 0
    for file in files.values():
        hit = lines[str(file.path)]
        if not hit:
            continue
        code = {slot.statement.lineno for slot in file.slots}
        total, gone = total + len(code), gone + len(code & hit)
        found += _of_file(tested, file, files, hit, numbers)
    return PythonMutants(tuple(found), gone, total - gone)


def _module_of(tested: ModulePass) -> str:
    """The module that a pass, or its rules, are written in; "" if there is none."""
    cls = type(tested)
    if hasattr(sys.modules.get(cls.__module__), cls.__qualname__):
        return cls.__module__
    laws = tested.rule_set().laws if isinstance(tested, RulesPass) else ()
    places = [law.place.file for law in laws]
    paths = {Path(place).resolve() for place in places if place.endswith(".py")}
    return next((name for name, path in _loaded() if path in paths), "")


def _loaded() -> Iterator[tuple[str, Path]]:
    for name, module in tuple(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is not None:
            yield name, Path(file)


def _of_file(
    tested: ModulePass,
    file: PythonFile,
    files: Mapping[str, PythonFile],
    hit: set[int],
    numbers: Numbers,
) -> Iterator[Mutant]:
    for index, slot in enumerate(file.slots):
        if not _is_reached(slot, hit):
            continue
        for each in PYTHON_CLASSES:
            for new in each.changes(slot):
                yield Mutant(
                    tested.name,
                    each.name,
                    numbers.next(each.name),
                    f"{file.path.name}:{slot.node.lineno}",
                    _shown(slot.node),
                    _shown(new),
                    partial(_made, tested, file, files, index, new),
                )


def _is_reached(slot: Slot, hit: set[int]) -> bool:
    """Whether programs go through a slot; of a guard that is dropped, through what it guards."""
    node = slot.node
    if isinstance(node, ast.If) and node.body[0].lineno not in hit:
        return False
    return slot.statement.lineno in hit or not hit.isdisjoint(slot.lines)


def _shown(node: ast.AST) -> str:
    if isinstance(node, ast.Pass):
        return "nothing"
    text = ast.unparse(ast.fix_missing_locations(node))
    text = " ".join(text.split("\n    ")).replace("\n", " ")
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _made(
    tested: ModulePass, file: PythonFile, files: Mapping[str, PythonFile], slot: int, new: ast.AST
) -> ModulePass:
    module, name = next(iter(files)), type(tested).__qualname__
    copy = copy_of(module, files, file.name, file.changed(slot, new))
    made = cast("type[ModulePass] | None", getattr(copy, name, None))
    if made is not None:
        return made(**options_of(tested))
    assert isinstance(tested, RulesPass)
    rules = [each for each in vars(copy).values() if isinstance(each, PythonRule)]
    return with_rules(tested, bind_python_rules(rules, tested.rule_set().vocabulary))


def options_of(tested: ModulePass) -> dict[str, object]:
    """The options that a pass was made with."""
    if not is_dataclass(tested):
        return {}
    return {each.name: getattr(tested, each.name) for each in fields(tested)}
