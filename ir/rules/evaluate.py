"""Evaluates the expressions of a rule once its names are bound."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, cast

from xdsl.ir import Attribute, Operation, SSAValue

from ..support.errors import InputError
from ..support.limits import short
from ..upstream import VerifyException
from .bound_rule import Env
from .bounded import TooLarge, checked, times
from .library import FUNCTIONS, Function
from .syntax import Call, Constant, Expression, Listed, Name, Operator, Place, Property
from .values import Plain, equal_values, plain
from .vocabulary import Vocabulary


class NoValue(Exception):
    """An expression has no value. The message says why.

    For example, a division leaves a remainder, an absent number is added, or a function does not
    accept its argument.
    """


class CallFailed(Exception):
    """A guard or function written in Python raised an error.

    Attributes:
        place: of the call.
    """

    def __init__(self, name: str, place: Place, error: Exception) -> None:
        super().__init__(f"{name} raised {type(error).__name__}: {error}")
        self.place = place
        self.error = error


def attribute_value(op: Operation, name: str, vocabulary: Vocabulary) -> Plain:
    """An attribute of an operation as rules see it. If absent: its default, or else none."""
    found = op.properties.get(name)
    if found is None:
        found = op.attributes.get(name)
    known = vocabulary.info(type(op)).attributes.get(name)
    if found is None and known is not None:
        found = known.default
        if found is None and known.kind == "bool":
            return False
    return plain(found)


def evaluate(expression: Expression, env: Env, vocabulary: Vocabulary) -> Any:
    """The value of an expression.

    Raises NoValue and CallFailed, and TooLarge for a number or list that exceeds a limit.
    """
    match expression:
        case Constant():
            return expression.value
        case Name():
            return env[expression.name]
        case Property():
            return attribute_value(env[expression.op], expression.name, vocabulary)
        case Listed():
            return tuple(evaluate(each, env, vocabulary) for each in expression.items)
        case Call():
            return _call(expression, env, vocabulary)
        case Operator(symbol="and", operands=operands):
            return all(evaluate(each, env, vocabulary) for each in operands)
        case Operator(symbol="or", operands=operands):
            return any(evaluate(each, env, vocabulary) for each in operands)
        case Operator(symbol=symbol, operands=operands):
            values = [evaluate(each, env, vocabulary) for each in operands]
            try:
                return checked(OPERATORS[symbol](*values))
            except TooLarge as error:
                raise TooLarge(f"{expression.place}: {error}") from None
            except (TypeError, OverflowError):
                # Some integers are too large to be compared with floats, or added to them.
                given = " and ".join(map(value_text, values))
                raise NoValue(f"{expression_text(expression)}: {symbol} of {given}") from None


def _call(call: Call, env: Env, vocabulary: Vocabulary) -> Any:
    function = FUNCTIONS[call.name]
    arguments = [
        argument(evaluate(each, env, vocabulary), kind)
        for each, kind in zip(call.arguments, function.kinds, strict=True)
    ]
    try:
        return checked(result(function, function.call(*arguments)))
    except TooLarge as error:
        raise TooLarge(f"{call.place}: {error}") from None
    except (InputError, VerifyException) as error:
        raise NoValue(str(error)) from None
    except Exception as error:
        raise CallFailed(call.name, call.place, error) from error


def argument(value: Any, kind: str) -> Any:
    """A value converted for a parameter of a kind: an operation becomes its only result."""
    if kind == "value" and isinstance(value, Operation):
        return value.results[0]
    if kind == "op" and isinstance(value, SSAValue):
        return value.owner
    return value


def result(function: Function, value: Any) -> Any:
    """The return value of a function, converted to what rules compute with."""
    if isinstance(value, Attribute) and function.result not in ("attribute", "any"):
        return plain(value)
    return value


def _divide(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        if b == 0 or a % b:
            raise NoValue(f"{_literal(a)} / {_literal(b)} is not a whole number")
        return a // b
    if b == 0:
        raise NoValue(f"{_literal(a)} / 0 is not a number")
    return a / b


def _whole(function: Callable[[Any, Any], Any], symbol: str) -> Callable[[Any, Any], Any]:
    def divide(a: Any, b: Any) -> Any:
        if b == 0:
            raise NoValue(f"{_literal(a)} {symbol} 0 is not a number")
        return function(a, b)

    return divide


def _plus(a: Any, b: Any) -> Any:
    """Adds numbers, or joins lists."""
    return (*a, *b) if isinstance(a, tuple) else a + b


def _differs(a: Any, b: Any) -> bool:
    return not equal_values(a, b)


OPERATORS: dict[str, Callable[..., Any]] = {
    "+": _plus,
    "-": operator.sub,
    "*": times,
    "/": _divide,
    "//": _whole(lambda a, b: a // b, "//"),
    "%": _whole(lambda a, b: a % b, "%"),
    "==": equal_values,
    "!=": _differs,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "not": operator.not_,
    "neg": operator.neg,
}
"""The function of each symbol. `and` and `or` evaluate from the left, as far as needed."""


def value_text(value: object) -> str:
    """A value as a rule would write it: an operation by its name, a value by its type."""
    match value:
        case Operation():
            return value.name
        case SSAValue():
            return f"{value.type}"
        case tuple():
            items = cast("tuple[object, ...]", value)
            return f"[{', '.join(map(value_text, items))}]"
        case _:
            return _literal(value)


def expression_text(expression: Expression) -> str:
    """The text of an expression."""
    match expression:
        case Constant():
            return _literal(expression.value)
        case Name():
            return expression.name
        case Property():
            return f"{expression.op}.{expression.name}"
        case Listed():
            return f"[{', '.join(map(expression_text, expression.items))}]"
        case Call():
            return f"{expression.name}({', '.join(map(expression_text, expression.arguments))})"
        case Operator(symbol=symbol, operands=(inner,)):
            return f"{'-' if symbol == 'neg' else 'not '}{_nested(inner, _STRENGTH[symbol])}"
        case Operator(symbol=symbol, operands=(left, *others)):
            strength = _STRENGTH[symbol]
            # Operators associate to the left, so the left operand needs no parentheses.
            first = _nested(left, strength + (strength == _STRENGTH["=="]))
            return f" {symbol} ".join([first, *(_nested(each, strength + 1) for each in others)])
        case Operator():
            return expression.symbol


_LEVELS = (
    ("or",),
    ("and",),
    ("not",),
    ("==", "!=", "<", "<=", ">", ">="),
    ("+", "-"),
    ("*", "/", "//", "%"),
    ("neg",),
)
_STRENGTH = {symbol: strength for strength, level in enumerate(_LEVELS) for symbol in level}
"""The precedence of each symbol, as in the grammar."""


def _nested(expression: Expression, needed: int) -> str:
    """An operand, in parentheses if its precedence is lower than needed."""
    text = expression_text(expression)
    loose = isinstance(expression, Operator) and _STRENGTH[expression.symbol] < needed
    return f"({text})" if loose else text


def _literal(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value) if abs(value) < 2**64 else short(value)
    return f'"{value}"' if isinstance(value, str) else str(value)
