"""What expressions of a rule are worth, once its names are bound."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from xdsl.ir import Attribute, Operation, SSAValue

from ..errors import InputError
from .law import Env
from .library import FUNCTIONS, Function
from .syntax import Call, Constant, Expression, Listed, Name, Operator, Place, Property
from .values import Plain, plain
from .vocabulary import Vocabulary


class Inexact(Exception):
    """A division that leaves a rest, where whole numbers are meant."""


class CallFailed(Exception):
    """A guard or function has raised. place: of the call; error: what it raised."""

    def __init__(self, name: str, place: Place, error: Exception) -> None:
        super().__init__(f"{name} raised {type(error).__name__}: {error}")
        self.place = place
        self.error = error


def attribute_value(op: Operation, name: str, vocabulary: Vocabulary) -> Plain:
    """An attribute of an operation as rules see it; its default, else none, where it is absent."""
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
    """The value of an expression. Raises Inexact, and CallFailed."""
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
        case Operator("and", operands):
            return all(evaluate(each, env, vocabulary) for each in operands)
        case Operator("or", operands):
            return any(evaluate(each, env, vocabulary) for each in operands)
        case Operator(symbol=symbol, operands=operands):
            return OPERATORS[symbol](*(evaluate(each, env, vocabulary) for each in operands))


def _call(call: Call, env: Env, vocabulary: Vocabulary) -> Any:
    function = FUNCTIONS[call.name]
    arguments = [
        argument(evaluate(each, env, vocabulary), kind)
        for each, kind in zip(call.arguments, function.kinds, strict=True)
    ]
    try:
        return result(function, function.call(*arguments))
    except InputError:
        raise
    except Exception as error:
        raise CallFailed(call.name, call.place, error) from error


def argument(value: Any, kind: str) -> Any:
    """A value as a parameter of a kind takes it: an operation's one result, where a value is."""
    if kind == "value" and isinstance(value, Operation):
        return value.results[0]
    if kind == "op" and isinstance(value, SSAValue):
        return value.owner
    return value


def result(function: Function, value: Any) -> Any:
    """What a function returned, as rules compute with it."""
    if isinstance(value, Attribute) and function.result not in ("attribute", "any"):
        return plain(value)
    return value


def _divide(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        if b == 0 or a % b:
            raise Inexact(f"{a} / {b} is no whole number")
        return a // b
    if b == 0:
        raise Inexact(f"{a} / 0 is no number")
    return a / b


def _whole(function: Callable[[Any, Any], Any], symbol: str) -> Callable[[Any, Any], Any]:
    def divide(a: Any, b: Any) -> Any:
        if b == 0:
            raise Inexact(f"{a} {symbol} 0 is no number")
        return function(a, b)

    return divide


def _plus(a: Any, b: Any) -> Any:
    """Numbers are added, lists are joined."""
    return (*a, *b) if isinstance(a, tuple) else a + b


OPERATORS: dict[str, Callable[..., Any]] = {
    "+": _plus,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "//": _whole(operator.floordiv, "//"),
    "%": _whole(operator.mod, "%"),
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "not": operator.not_,
    "neg": operator.neg,
}
"""What each symbol computes; and, or are read from the left as far as needed."""


def shown(expression: Expression) -> str:
    """An expression as it may be written."""
    match expression:
        case Constant():
            return _literal(expression.value)
        case Name():
            return expression.name
        case Property():
            return f"{expression.op}.{expression.name}"
        case Listed():
            return f"[{', '.join(map(shown, expression.items))}]"
        case Call():
            return f"{expression.name}({', '.join(map(shown, expression.arguments))})"
        case Operator("not", (inner,)):
            return f"not {shown(inner)}"
        case Operator("neg", (inner,)):
            return f"-{shown(inner)}"
        case Operator(symbol=symbol, operands=operands):
            return f" {symbol} ".join(
                f"({shown(each)})" if isinstance(each, Operator) else shown(each)
                for each in operands
            )


def _literal(value: object) -> str:
    words = {True: "true", False: "false", None: "none"}
    if isinstance(value, bool) or value is None:
        return words[value]
    return f'"{value}"' if isinstance(value, str) else str(value)
