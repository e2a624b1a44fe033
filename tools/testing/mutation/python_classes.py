"""Classes of mistakes in the Python code of a pass, as changes of its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from .python_source import Slot

Changes = Callable[[Slot], Iterator[ast.AST]]
"""Yields replacements for the node in a slot, each with one mistake. Yields nothing if the class
does not apply there."""


@dataclass(frozen=True)
class PythonClass:
    """A class of mistakes.

    Attributes:
        line: a one-line description.
    """

    name: str
    line: str
    changes: Changes


def _number(value: int) -> ast.Constant:
    return ast.Constant(value)


def _is_int(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _drop_last(slot: Slot) -> Iterator[ast.AST]:
    node = slot.node
    if slot.field != "iter" or not isinstance(slot.owner, ast.For | ast.comprehension):
        return
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
        stop = 0 if len(node.args) == 1 else 1
        args = list(node.args)
        args[stop] = ast.BinOp(args[stop], ast.Sub(), _number(1))
        yield ast.Call(node.func, args, [])
        return
    all_of_it = ast.Call(ast.Name("tuple", ast.Load()), [node], [])  # pyright: ignore[reportArgumentType]
    yield ast.Subscript(all_of_it, ast.Slice(None, _number(-1)), ast.Load())


def _ceil_to_floor(slot: Slot) -> Iterator[ast.AST]:
    match slot.node:
        case ast.UnaryOp(
            op=ast.USub(),
            operand=ast.BinOp(
                op=ast.FloorDiv(), left=ast.UnaryOp(op=ast.USub(), operand=n), right=k
            ),
        ):
            yield ast.BinOp(n, ast.FloorDiv(), k)
        case ast.Call(func=ast.Name(id="ceil"), args=[ast.BinOp(op=ast.Div(), left=n, right=k)]):
            yield ast.BinOp(n, ast.FloorDiv(), k)
        case _:
            return


_ORDERED = (ast.Sub, ast.FloorDiv, ast.Div, ast.Mod, ast.Pow)


def _swap_operands(slot: Slot) -> Iterator[ast.AST]:
    node = slot.node
    if isinstance(node, ast.BinOp) and isinstance(node.op, _ORDERED):
        yield ast.BinOp(node.right, node.op, node.left)
    elif isinstance(node, ast.Call) and _builds(node.func):
        for i, (a, b) in enumerate(pairwise(node.args)):
            if _are_alike(a, b):
                args = [*node.args[:i], b, a, *node.args[i + 2 :]]
                yield ast.Call(node.func, args, node.keywords)


def _builds(func: ast.expr) -> bool:
    """Whether a call constructs a class or calls a private function of the pass."""
    name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    return name[:1].isupper() or (name.startswith("_") and len(name) > 1)


def _are_alike(a: ast.expr, b: ast.expr) -> bool:
    """Whether two arguments have one syntactic form and different texts, so they may be swapped."""
    return (
        type(a) is type(b)
        and isinstance(a, ast.Name | ast.Attribute | ast.Subscript | ast.Call)
        and ast.dump(a) != ast.dump(b)
    )


_JUMPS = (ast.Return, ast.Continue, ast.Break)


def _drop_guard(slot: Slot) -> Iterator[ast.AST]:
    node = slot.node
    if isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], _JUMPS):
        yield ast.Pass()
    elif slot.field == "test" and isinstance(slot.owner, ast.If):
        if not isinstance(slot.owner.body[-1], (*_JUMPS, ast.Raise)):
            yield ast.Constant(True)
    elif (slot.field == "test" and isinstance(slot.owner, ast.IfExp)) or (
        slot.field == "ifs" and isinstance(slot.owner, ast.comprehension)
    ):
        yield ast.Constant(True)
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        for i in range(len(node.values)):
            rest = [*node.values[:i], *node.values[i + 1 :]]
            yield rest[0] if len(rest) == 1 else ast.BoolOp(ast.And(), rest)
    elif isinstance(node, ast.Call) and _is_all(node.func) and node.args:
        yield ast.Constant(True)


def _is_all(func: ast.expr) -> bool:
    return isinstance(func, ast.Name) and func.id == "all"


_RELAXED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


def _comparison(slot: Slot) -> Iterator[ast.AST]:
    node = slot.node
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            ops = [*node.ops[:i], _RELAXED[type(op)](), *node.ops[i + 1 :]]
            yield ast.Compare(node.left, ops, node.comparators)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand


_ARITHMETIC = (ast.Sub, ast.FloorDiv, ast.Mod, ast.Mult)


def _off_by_one(slot: Slot) -> Iterator[ast.AST]:
    node = slot.node
    if not isinstance(node, ast.expr) or not _is_an_int(slot):
        return
    for by in (ast.Add(), ast.Sub()):
        yield ast.BinOp(node, by, _number(1))


def _is_an_int(slot: Slot) -> bool:
    """Whether an expression is likely to be an integer used as a position or size."""
    node = slot.node
    if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _is_int(node.left) or _is_int(node.right)
    counted = isinstance(node, ast.Name) and node.id in _counters(slot.function)
    if isinstance(slot.owner, ast.Slice):
        return True
    if slot.field == "slice" and isinstance(slot.owner, ast.Subscript):
        return counted
    if isinstance(slot.owner, ast.Call) and slot.field == "args":
        return counted
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"


def _counters(function: ast.AST) -> set[str]:
    """The names of a function that hold integers: int parameters and loop counters."""
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.arg) and isinstance(node.annotation, ast.Name):
            if node.annotation.id == "int":
                found.add(node.arg)
        elif isinstance(node, ast.For | ast.comprehension) and isinstance(node.iter, ast.Call):
            called = getattr(node.iter.func, "id", "")
            target = node.target
            if called == "enumerate" and isinstance(target, ast.Tuple):
                target = target.elts[0]
            if called in ("range", "enumerate") and isinstance(target, ast.Name):
                found.add(target.id)
    return found


def _wrong_axis(slot: Slot) -> Iterator[ast.AST]:
    node = slot.node
    at = slot.field == "slice" and isinstance(slot.owner, ast.Subscript)
    if at or (isinstance(slot.owner, ast.keyword) and slot.owner.arg == "axis"):
        if _is_int(node) and isinstance(node, ast.Constant) and node.value == 0:
            yield _number(-1)
        elif _is_minus_one(node):
            yield _number(0)
    if at and isinstance(node, ast.Slice) and node.step is None:
        if node.lower is not None and node.upper is None and _is_int(node.lower):
            yield ast.Slice(None, ast.UnaryOp(ast.USub(), node.lower))
        elif node.upper is not None and node.lower is None and _is_minus_one(node.upper):
            yield ast.Slice(_number(1), None)
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "reversed":
        yield node.args[0]


def _is_minus_one(node: ast.AST) -> bool:
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1)):
            return True
        case _:
            return False


def _wrong_constant(slot: Slot) -> Iterator[ast.AST]:
    node = slot.node
    if not isinstance(node, ast.Constant):
        return
    # off-by-one changes constants in indices and sums.
    if slot.field == "slice" or isinstance(slot.owner, ast.Slice | ast.BinOp):
        return
    if isinstance(slot.owner, ast.keyword) and slot.owner.arg == "strict":
        return
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, int | float):
        yield ast.Constant(node.value + 1)


_OTHER = {"any": "all", "all": "any", "min": "max", "max": "min"}


def _wrong_function(slot: Slot) -> Iterator[ast.AST]:
    node = slot.node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _OTHER:
        yield ast.Call(ast.Name(_OTHER[node.func.id], ast.Load()), node.args, node.keywords)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.BitAnd):
        other = ast.BitAnd() if isinstance(node.op, ast.BitOr) else ast.BitOr()
        yield ast.BinOp(node.left, other, node.right)


def _forget(slot: Slot) -> Iterator[ast.AST]:
    node = slot.node
    called = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    stored = isinstance(node, ast.Assign) and not any(
        isinstance(each, ast.Name | ast.Tuple) for each in node.targets
    )
    if called or stored or isinstance(node, ast.AugAssign):
        yield ast.Pass()


PYTHON_CLASSES = (
    PythonClass("drop-last", "a loop skips its last iteration", _drop_last),
    PythonClass("ceil-to-floor", "a quotient is rounded down instead of up", _ceil_to_floor),
    PythonClass("swap-operands", "two operands or arguments are swapped", _swap_operands),
    PythonClass("drop-guard", "a condition is removed", _drop_guard),
    PythonClass("comparison", "< for <=, == for !=, or a not is removed", _comparison),
    PythonClass("off-by-one", "an index, bound or size is too large or small by 1", _off_by_one),
    PythonClass("wrong-axis", "the last axis or element for the first, or reversed", _wrong_axis),
    PythonClass("wrong-constant", "another number or truth value", _wrong_constant),
    PythonClass("wrong-function", "any for all, min for max, | for &", _wrong_function),
    PythonClass("forget-effect", "a call or assignment with a side effect is removed", _forget),
)
"""All classes of mistakes in Python, in the order in which they are reported."""
