"""Mistakes in the Python of a pass, where programs go through it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from operator import attrgetter

from ....ir.upstream import ModulePass
from .mutant import Mutant, Numbers
from .python_classes import PYTHON_CLASSES
from .python_source import PythonFile, Slot, copy_of, files_of
from .reached import reached_lines

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
    cls = type(tested)
    files = files_of(cls.__module__) if _is_found(cls) else {}
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


def _is_found(cls: type[ModulePass]) -> bool:
    """Whether a class is where its name says, so that a copy of its module has it too."""
    import_name, name = cls.__module__, cls.__qualname__
    files = files_of(import_name)
    return bool(files) and any(
        isinstance(node, ast.ClassDef) and node.name == name.partition(".")[0]
        for node in files[import_name].tree.body
    )


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
    cls = type(tested)
    module = copy_of(cls.__module__, files, file.name, file.changed(slot, new))
    made: type[ModulePass] = attrgetter(cls.__qualname__)(module)
    return made(**options_of(tested))


def options_of(tested: ModulePass) -> dict[str, object]:
    """The options that a pass was made with."""
    if not is_dataclass(tested):
        return {}
    return {each.name: getattr(tested, each.name) for each in fields(tested)}
