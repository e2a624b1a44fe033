"""Which functions of a module call which: how deep calls are, and how large they are together.

Nothing here recurses, and each function is looked at once, so that no program takes long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.dialects.func import FuncOp

from ..ir.support.errors import InputError
from ..ir.support.limits import INLINED_NODES, NESTED_CALLS
from ..ir.upstream import ModuleOp


@dataclass(frozen=True)
class Calls:
    """The size of a function, and its calls.

    Attributes:
        operations: their number, with those in regions.
        callees: the functions of the module that it names, once for each operation that does.
    """

    operations: int
    callees: Sequence[str]


def calls_of(functions: Mapping[str, FuncOp]) -> dict[str, Calls]:
    """The size and the calls of each function, by name."""
    found: dict[str, Calls] = {}
    for name, function in functions.items():
        ops = list(function.body.walk())
        named = (each for op in ops for each in op.properties.values())
        symbols = (each.string_value() for each in named if isinstance(each, SymbolRefAttr))
        found[name] = Calls(len(ops), [each for each in symbols if each in functions])
    return found


def check_nested_calls(module: ModuleOp, root: str, place: str) -> None:
    """Raise InputError if calls are nested deeper than a run allows.

    A run would refuse them too, but only after all passes.

    Args:
        root: the function in which a run begins.
        place: the program's name in messages.
    """
    functions = _functions(module)
    if len(functions) <= NESTED_CALLS.most:
        return
    calls, depth = calls_of(functions), dict[str, int]()
    for name in _callees_first(calls, root):
        # A function that calls itself may end, and has no depth of its own.
        depth[name] = 1 + max((depth.get(each, -1) for each in calls[name].callees), default=-1)
    if depth.get(root, 0) > NESTED_CALLS.most:
        raise InputError(f"{place}: {NESTED_CALLS.refusal(f'calls {depth[root]} deep')}")


def check_inlined(functions: Mapping[str, FuncOp], root: str) -> None:
    """Raise InputError if a function has too many operations with all that it calls."""
    calls, sizes = calls_of(functions), dict[str, int]()
    for name in _callees_first(calls, root):
        inner = sum(sizes.get(each, 0) for each in calls[name].callees)
        sizes[name] = calls[name].operations + inner
    if sizes.get(root, 0) > INLINED_NODES.most:
        raise InputError(INLINED_NODES.refusal(f"@{root} with all that it calls"))


def _functions(module: ModuleOp) -> dict[str, FuncOp]:
    return {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}


def _callees_first(calls: Mapping[str, Calls], root: str) -> list[str]:
    """The functions that one reaches, each after those that it calls, but for cycles."""
    found: dict[str, None] = {}
    seen: set[str] = set()
    waiting = [(root, False)] if root in calls else []
    while waiting:
        name, done = waiting.pop()
        if done:
            found[name] = None
        elif name not in seen:
            seen.add(name)
            waiting.append((name, True))
            waiting += [(each, False) for each in calls[name].callees if each not in seen]
    return list(found)
