"""The operators that a pass speaks of: programs with many of these are those that test it.

What a pass looks for is one thing in fifty, and all of it has to meet in one program. Its code
names what it looks for, and so do the patterns of its rules.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf
from types import CodeType, FunctionType, ModuleType
from typing import TypeGuard

from xdsl.ir import Operation

from ....ir.rules.evaluate import CallFailed
from ....ir.rules.law import Law
from ....ir.rules.rule_set import RulesPass
from ....ir.rules.vocabulary import Vocabulary
from ....ir.upstream import ModulePass
from ..generators.build import Operators
from ..generators.program import Program
from ..generators.rules.reading import Fit, fit
from ..generators.rules.sources import Sources
from ..generators.sketch import DATA, Sketch

MOST = 12
"""A class that more operators belong to says nothing of what a pass looks for."""


def named_operators(passes: Iterable[ModulePass], operators: Operators) -> tuple[int, ...]:
    """The operators that passes name, by their numbers; () if they name none, or nearly all."""
    named: set[int] = set()
    for each in passes:
        for cls in _named_by(each):
            known = [i for i, other in enumerate(operators.classes) if cls in other.__mro__]
            if len(known) <= MOST:
                named.update(known)
    return tuple(sorted(named)) if len(named) <= len(operators.classes) // 2 else ()


def about(sketch: Sketch, operators: Sequence[int]) -> Sketch:
    """A sketch of the same steps with some operators alone."""
    steps = (replace(each, kind=operators[each.kind % len(operators)]) for each in sketch.steps)
    return replace(sketch, steps=tuple(steps), kinds=tuple(operators))


def programs_of_rules(
    passes: Iterable[ModulePass], operators: Operators, seed: int, limit: float
) -> Iterator[Program]:
    """Programs of nn that have the left side of a rule in them: one of each rule in turn.

    limit: seconds for one question to a rule's guards.
    """
    known = operators.instances.vocabulary
    sources = [
        Sources(law, known, operators, seed, DATA, _fits(law, known), limit, inf)
        for each in passes
        if isinstance(each, RulesPass)
        for law in each.rule_set().chosen(each.only, each.skip).laws
    ]
    left = [each.fitting() for each in sources if each.sampled]
    while left:
        for each in tuple(left):
            program = next(each, None)
            if program is None:
                left.remove(each)
            else:
                yield program


def _fits(law: Law, vocabulary: Vocabulary) -> Callable[[Operation, Program], Fit | None]:
    def fits(op: Operation, program: Program) -> Fit | None:
        try:
            return fit(law, op, vocabulary)
        # A guard that raises is for the pass to meet, which is then at fault.
        except CallFailed:
            return None

    return fits


def _named_by(each: ModulePass) -> Iterator[type]:
    if isinstance(each, RulesPass):
        for law in each.rule_set().chosen(each.only, each.skip).laws:
            for pattern in law.variants[0].walk():
                if len(pattern.classes) <= MOST:
                    yield from pattern.classes
        return
    # What a class overrides is asked too: of a pass that stands for another one.
    functions = [f for cls in type(each).__mro__ for f in vars(cls).values() if _is_function(f)]
    seen: set[FunctionType] = set()
    while functions:
        function = functions.pop()
        if function in seen or not _is_near(function, type(each)):
            continue
        seen.add(function)
        names = set(_names(function.__code__))
        for value in _values(function.__globals__, names):
            if isinstance(value, FunctionType):
                functions.append(value)
            elif isinstance(value, type):
                functions += [f for _, f in inspect.getmembers(value, inspect.isfunction)]
                yield value


def _is_function(value: object) -> TypeGuard[FunctionType]:
    return isinstance(value, FunctionType)


def _is_near(function: FunctionType, cls: type) -> bool:
    """Whether a function is of the file that a pass is written in."""
    return function.__module__ == cls.__module__


def _names(code: CodeType) -> Iterator[str]:
    """All names that code uses, and the code inside of it."""
    yield from code.co_names
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _names(const)


def _values(scope: dict[str, object], names: set[str]) -> Iterator[object]:
    """What names mean: in a module's scope, and in the modules that it has imported."""
    found = [scope[name] for name in sorted(names & scope.keys())]
    yield from found
    for module in found:
        if isinstance(module, ModuleType):
            yield from (vars(module)[name] for name in sorted(names & vars(module).keys()))
