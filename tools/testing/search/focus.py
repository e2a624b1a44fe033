"""The operators that a pass names, and programs that contain many of them.

A random program rarely contains everything that a pass looks for. The code of the pass, or the
patterns of its rules, name the operators in question; programs made of these test it better.
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
"""Base classes of more operators than this are too general to tell what a pass looks for."""


def named_operators(passes: Iterable[ModulePass], operators: Operators) -> tuple[int, ...]:
    """The numbers of the operators that passes name; () if they name none, or more than half."""
    named: set[int] = set()
    for each in passes:
        for cls in _named_by(each):
            known = [i for i, other in enumerate(operators.classes) if cls in other.__mro__]
            if len(known) <= MOST:
                named.update(known)
    return tuple(sorted(named)) if len(named) <= len(operators.classes) // 2 else ()


def about(sketch: Sketch, operators: Sequence[int]) -> Sketch:
    """A sketch with the same steps, but with only these operators."""
    steps = (replace(each, kind=operators[each.kind % len(operators)]) for each in sketch.steps)
    return replace(sketch, steps=tuple(steps), kinds=tuple(operators))


def programs_of_rules(
    passes: Iterable[ModulePass], operators: Operators, seed: int, limit: float
) -> Iterator[Program]:
    """Programs of nn that contain the left side of a rule, for each rule in turn.

    limit: CPU seconds for evaluating a rule's guards once.
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
        # If this guard raises in the pass too, the check reports the pass.
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
    # Overridden methods too: a wrapper such as `must_accept_all` overrides those of its pass.
    functions = [f for cls in type(each).__mro__ for f in vars(cls).values() if _is_function(f)]
    seen: set[FunctionType] = set()
    while functions:
        function = functions.pop()
        if function in seen or not _is_in_file_of(type(each), function):
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


def _is_in_file_of(cls: type, function: FunctionType) -> bool:
    """Whether a function is defined in the same file as a pass."""
    return function.__module__ == cls.__module__


def _names(code: CodeType) -> Iterator[str]:
    """All names that code uses, including the code of nested functions."""
    yield from code.co_names
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _names(const)


def _values(scope: dict[str, object], names: set[str]) -> Iterator[object]:
    """The values of names in a module's scope and in the modules that it imports."""
    found = [scope[name] for name in sorted(names & scope.keys())]
    yield from found
    for module in found:
        if isinstance(module, ModuleType):
            yield from (vars(module)[name] for name in sorted(names & vars(module).keys()))
