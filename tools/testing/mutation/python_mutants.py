"""Mutants with a mistake in the Python code of a pass, in lines that programs reach."""

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

MAX_EXCERPT = 72
"""Longer pieces of code are cut to this many characters."""


@dataclass(frozen=True)
class PythonMutants:
    """The mutants of a pass's Python code.

    Attributes:
        reached, not_reached: number of its lines with code that programs reach, and that none
            reaches.
    """

    mutants: tuple[Mutant, ...]
    reached: int = 0
    not_reached: int = 0


def python_mutants(tested: ModulePass, run: Callable[[], None]) -> PythonMutants:
    """All mutants of a pass's Python code, in the order of the source.

    Lines that the programs of `run` do not reach have no mutants.

    Args:
        run: runs the pass on a few programs.
    """
    module = _module_of(tested)
    files = files_of(module) if module else {}
    if not files:
        return PythonMutants(())
    lines = reached_lines(run, [str(file.path) for file in files.values()])
    numbers, found, total, reached = Numbers(), list[Mutant](), 0, 0
    for file in files.values():
        hit = lines[str(file.path)]
        if not hit:
            continue
        code = {slot.statement.lineno for slot in file.slots}
        total, reached = total + len(code), reached + len(code & hit)
        found += _mutants_of_file(tested, file, files, hit, numbers)
    return PythonMutants(tuple(found), reached, total - reached)


def _module_of(tested: ModulePass) -> str:
    """The name of the module that contains a pass or its Python rules; "" if there is none."""
    cls = type(tested)
    if hasattr(sys.modules.get(cls.__module__), cls.__qualname__):
        return cls.__module__
    bound = tested.rule_set().bound if isinstance(tested, RulesPass) else ()
    places = [rule.place.file for rule in bound]
    paths = {Path(place).resolve() for place in places if place.endswith(".py")}
    return next((name for name, path in _loaded_files() if path in paths), "")


def _loaded_files() -> Iterator[tuple[str, Path]]:
    """The name and file of each loaded module."""
    for name, module in tuple(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is not None:
            yield name, Path(file)


def _mutants_of_file(
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
                    _excerpt(slot.node),
                    _excerpt(new),
                    partial(_mutated_pass, tested, file, files, index, new),
                )


def _is_reached(slot: Slot, hit: set[int]) -> bool:
    """Whether programs reach a slot. An if statement is reached only if its body is."""
    node = slot.node
    if isinstance(node, ast.If) and node.body[0].lineno not in hit:
        return False
    return slot.statement.lineno in hit or not hit.isdisjoint(slot.lines)


def _excerpt(node: ast.AST) -> str:
    if isinstance(node, ast.Pass):
        return "nothing"
    text = ast.unparse(ast.fix_missing_locations(node))
    text = " ".join(text.split("\n    ")).replace("\n", " ")
    return text if len(text) <= MAX_EXCERPT else f"{text[:MAX_EXCERPT]}..."


def _mutated_pass(
    tested: ModulePass, file: PythonFile, files: Mapping[str, PythonFile], slot: int, new: ast.AST
) -> ModulePass:
    """The pass with a new node in one slot of one of its files."""
    module, name = next(iter(files)), type(tested).__qualname__
    copy = copy_of(module, files, file.name, file.with_slot(slot, new))
    made = cast("type[ModulePass] | None", getattr(copy, name, None))
    if made is not None:
        return made(**options_of(tested))
    assert isinstance(tested, RulesPass)
    rules = [each for each in vars(copy).values() if isinstance(each, PythonRule)]
    return with_rules(tested, bind_python_rules(rules, tested.rule_set().vocabulary))


def options_of(tested: ModulePass) -> dict[str, object]:
    """The options of a pass."""
    if not is_dataclass(tested):
        return {}
    return {each.name: getattr(tested, each.name) for each in fields(tested)}
