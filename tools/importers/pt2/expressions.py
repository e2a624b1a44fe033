"""Sizes that torch.export writes as expressions of symbols, in the notation of SymPy's srepr.

Mul(Integer(2), Symbol('s77', positive=True, integer=True))     2 * s77
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import TypeAlias

LONGEST = 1000
"""The longest expression that is read, in letters."""

LARGEST = 2**63
"""Beyond this, no number is a size."""

Numbers: TypeAlias = Sequence[int]
Function: TypeAlias = Callable[[Numbers], int]


def _power(numbers: Numbers) -> int:
    base, exponent = numbers
    if not 0 <= exponent <= 64 or abs(base) > LARGEST:
        raise ValueError("a power that is no size")
    return base**exponent


def _of_two(function: Callable[[int, int], int]) -> Function:
    def of(numbers: Numbers) -> int:
        a, b = numbers
        return function(a, b)

    return of


FUNCTIONS: Mapping[str, Function] = {
    "Integer": sum,
    "Add": sum,
    "Mul": prod,
    "Max": max,
    "Min": min,
    "Pow": _power,
    **dict.fromkeys(("Mod", "PythonMod"), _of_two(lambda a, b: a % b)),
    **dict.fromkeys(("FloorDiv", "CleanDiv", "IntTrueDiv"), _of_two(lambda a, b: a // b)),
    "CeilDiv": _of_two(lambda a, b: -(-a // b)),
}
"""What the functions in an expression compute."""


@lru_cache(maxsize=4096)
def _parsed(text: str) -> ast.expr:
    if len(text) > LONGEST:
        raise ValueError(f"an expression of {len(text)} letters")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, MemoryError, RecursionError):
        raise ValueError(f"{text[:60]!r} is no expression") from None


def only_symbol(text: str) -> str | None:
    """The symbol that is the whole expression; None for another expression.

    Raises ValueError for a text that is no expression.
    """
    tree = _parsed(text)
    return _symbol(tree) if isinstance(tree, ast.Call) else None


JOINED = {"Mul": "*", "Add": "+"}
"""How the operands of some functions are joined in a text for people."""


def spelled(text: str) -> str:
    """An expression in a text for people, such as "2*s77".

    Raises ValueError for a text that is no expression.
    """
    return _spelled(_parsed(text))


def _spelled(tree: ast.expr) -> str:
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
        return ast.unparse(tree)
    name, operands = tree.func.id, [_spelled(each) for each in tree.args]
    if name in ("Symbol", "Integer"):
        return operands[0].strip("'") if operands else name
    if name in JOINED:
        inner = [f"({each})" if "+" in each and name == "Mul" else each for each in operands]
        return JOINED[name].join(inner)
    return f"{name}({','.join(operands)})"


def solved(text: str, size: int) -> int | None:
    """The value of the only symbol of an expression, for which the expression has a value.

    None if the expression is not of the form a * symbol + b, or has no such value. Raises
    ValueError for a text that is no expression.
    """
    (name,) = symbols_of(text)
    first, second = (value_of(text, {name: n}) for n in (1, 2))
    if second == first or (size - first) % (second - first):
        return None
    found = 1 + (size - first) // (second - first)
    return found if found >= 0 and value_of(text, {name: found}) == size else None


def symbols_of(text: str) -> list[str]:
    """The symbols in an expression. Raises ValueError for a text that is no expression."""
    found = (_symbol(each) for each in ast.walk(_parsed(text)) if isinstance(each, ast.Call))
    return list(dict.fromkeys(name for name in found if name is not None))


def value_of(text: str, symbols: Mapping[str, int]) -> int:
    """The value of an expression.

    Raises ValueError for a text that is no expression, and KeyError for a symbol without a value.

    Args:
        symbols: their values by name.
    """
    return _value(_parsed(text), symbols)


def _symbol(call: ast.Call) -> str | None:
    is_symbol = isinstance(call.func, ast.Name) and call.func.id == "Symbol" and call.args
    name = call.args[0] if is_symbol else None
    return name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else None


def _value(tree: ast.expr, symbols: Mapping[str, int]) -> int:
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        return -_value(tree.operand, symbols)
    if isinstance(tree, ast.Constant) and type(tree.value) is int:
        return tree.value
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
        name = _symbol(tree)
        if name is not None:
            return symbols[name]
        if tree.func.id in FUNCTIONS:
            operands = [_value(each, symbols) for each in tree.args]
            try:
                found = FUNCTIONS[tree.func.id](operands)
            except (TypeError, ZeroDivisionError) as error:
                raise ValueError(f"{ast.unparse(tree)[:60]}: {error}") from None
            if abs(found) > LARGEST:
                raise ValueError(f"{ast.unparse(tree)[:60]}: no size is so large")
            return found
    raise ValueError(f"{ast.unparse(tree)[:60]}: not understood")
