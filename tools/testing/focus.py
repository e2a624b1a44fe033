"""The operators that a pass speaks of: programs with many of these are those that test it.

What a pass looks for is one thing in fifty, and all of it has to meet in one program. Its code
names what it looks for, and so do the patterns of its rules.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, ModuleType

from xdsl.ir import Operation

from ...ir.rules.rule_set import RulesPass
from ...ir.upstream import ModulePass
from .build import Operators

MOST = 12
"""A class that more operators belong to says nothing of what a pass looks for."""


def focused(passes: Iterable[ModulePass], operators: Operators) -> Operators | None:
    """The operators that passes name, of those there are; None if they name none, or nearly all."""
    named: set[type[Operation]] = set()
    for each in passes:
        for cls in _named_by(each):
            known = [operator for operator in operators.classes if cls in operator.__mro__]
            if len(known) <= MOST:
                named.update(known)
    if not named or len(named) > len(operators.classes) // 2:
        return None
    return Operators(operators.context, sorted(cls.name for cls in named))


def _named_by(each: ModulePass) -> Iterator[type]:
    if isinstance(each, RulesPass):
        for law in each.rule_set().chosen(each.only, each.skip).laws:
            for pattern in law.variants[0].walk():
                if len(pattern.classes) <= MOST:
                    yield from pattern.classes
        return
    functions = [f for _, f in inspect.getmembers(type(each), inspect.isfunction)]
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
