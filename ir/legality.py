"""What a level demands of its operations: rows of constraints, which are data.

A level is a table of rows. A row names operations, or whole dialects, and says what holds of them
at this level. `verify` checks the rows, and the reference prints them. What holds of an operation
at every level stands in its class instead.

    row("tile.copy tile.vertices", inside("tile.superstep"))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias, TypeVar, cast

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from .provenance import place
from .support.suggestions import suggestion
from .symbols import symbol_of, symbols_in
from .upstream import ModuleOp, VerifyException
from .xdsl.fields import operands_of
from .xdsl.walk import operations

T = TypeVar("T")


class ModuleFacts:
    """What constraints ask about a module. Each fact is found once, when it is first asked for.

    A verification makes one of these, and the module does not change meanwhile.
    """

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self._found: dict[Callable[[ModuleFacts], Any], Any] = {}

    @cached_property
    def operations(self) -> list[Operation]:
        """The module and all operations in it: each before those nested in it."""
        return operations(self.module)

    @cached_property
    def symbols(self) -> dict[str, Operation]:
        """The operations at the top of the module that have a name, by name."""
        ops = self.module.body.block.ops
        return {name: op for op in ops if (name := symbol_of(op)) is not None}

    def get(self, find: Callable[[ModuleFacts], T]) -> T:
        """What a function finds out about the module."""
        if find not in self._found:
            self._found[find] = find(self)
        return cast(T, self._found[find])


Check: TypeAlias = Callable[[Any, ModuleFacts], None]
"""Raises VerifyException unless an operation meets a condition.

The message says what is wrong, what it was and what is allowed. `verify` adds the operation and
where it came from.
"""


@dataclass(frozen=True)
class Constraint:
    """One condition on an operation.

    Attributes:
        says: the condition, as the reference prints it: "inside `tile.superstep`".
        check: raises VerifyException for an operation that does not meet it.
    """

    says: str
    check: Check = field(repr=False)


@dataclass(frozen=True)
class Row:
    """Operations that are legal on a level, and what holds of them there.

    Attributes:
        ops: names of operations ("tile.copy"), and of dialects, whose operations are all meant.
        needs: what holds of each, besides the needs of other rows that name it.
    """

    ops: tuple[str, ...]
    needs: tuple[Constraint, ...] = ()


def row(ops: str, *needs: Constraint) -> Row:
    """A row of a level's table.

    Args:
        ops: the names of operations and dialects, with spaces between them.
        needs: what holds of each.
    """
    return Row(tuple(ops.split()), needs)


class Table:
    """The rows of a level, by operation.

    Attributes:
        rows: all rows, in order.
        names: the dialects that are legal, and the legal operations of other dialects.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = tuple(rows)
        named = {name for each in self.rows for name in each.ops}
        self.names = frozenset(
            name for name in named if "." not in name or name.partition(".")[0] not in named
        )
        self._needs: dict[str, tuple[Constraint, ...] | None] = {}

    def needs(self, op_name: str) -> tuple[Constraint, ...] | None:
        """What holds of an operation, from all rows that name it; None if it is not legal."""
        if op_name not in self._needs:
            names = {op_name, op_name.partition(".")[0]}
            rows = [each for each in self.rows if not names.isdisjoint(each.ops)]
            self._needs[op_name] = (
                tuple(need for each in rows for need in each.needs) if rows else None
            )
        return self._needs[op_name]


# Constraints on operands, results, attributes and places


@dataclass(frozen=True)
class Kind:
    """The types of values that operations have at a level.

    Attributes:
        says: what a value of such a type is: "a tensor with a layout".
        has: whether a type is one of them.
        advice: what to do with a value of another type.
    """

    says: str
    has: Callable[[Attribute], bool] = field(repr=False)
    advice: str = ""


def _check_types(role: str, values: Iterable[SSAValue], kind: Kind) -> None:
    for i, value in enumerate(values):
        if not kind.has(value.type):
            advice = f"; {kind.advice}" if kind.advice else ""
            raise VerifyException(f"{role} {i} is {value.type}; need {kind.says}{advice}")


def results(kind: Kind) -> Constraint:
    """Results, and the arguments of regions, are of a kind."""

    def check(op: Operation, facts: ModuleFacts) -> None:
        _check_types("result", op.results, kind)
        for region in op.regions:
            for block in region.blocks:
                _check_types("argument", block.args, kind)

    return Constraint(f"results and arguments: {kind.says}", check)


def values(kind: Kind) -> Constraint:
    """Operands, results and the arguments of regions are of a kind."""
    of_results = results(kind)

    def check(op: Operation, facts: ModuleFacts) -> None:
        _check_types("operand", operands_of(op), kind)
        of_results.check(op, facts)

    return Constraint(f"values: {kind.says}", check)


def inside(*ops: str, why: str = "") -> Constraint:
    """The operation stands directly inside one of these.

    Args:
        ops: names of operations.
        why: what makes it so.
    """

    def check(op: Operation, facts: ModuleFacts) -> None:
        # Attributes alone: parent_op() makes calls, and a program has many variables.
        region = None if op.parent is None else op.parent.parent
        parent = None if region is None else region.parent
        if parent is None or parent.name not in ops:
            where = "inside no operation" if parent is None else f"inside {parent.name}"
            because = f", as {why}" if why else ""
            raise VerifyException(f"{where}; need {' or '.join(ops)} around it{because}")

    return Constraint(f"inside {_listed(ops)}", check)


def contains(*ops: str, users: Callable[[str], bool]) -> Constraint:
    """The module is no part of another one, and only these stand at its top.

    Args:
        ops: names of operations.
        users: whether the name of an operation is of a user's dialect. These stand anywhere,
            because a pass of the user's replaces them.
    """

    def check(op: Operation, facts: ModuleFacts) -> None:
        if op is not facts.module:
            raise VerifyException("inside another module; need one module")
        for each in facts.module.body.block.ops:
            if each.name not in ops and not users(each.name):
                raise VerifyException(
                    f"{each.name} at {place(each)} stands at the top of the module, where only "
                    f"{' and '.join(ops)} may stand; move it into a function"
                )

    return Constraint(f"the outermost operation, with {_listed(ops)} in it", check)


def without(name: str, instead: str) -> Constraint:
    """The operation has no attribute of this name.

    Args:
        name: the attribute's name.
        instead: what says the same at this level.
    """

    def check(op: Operation, facts: ModuleFacts) -> None:
        if name in op.properties or name in op.attributes:
            raise VerifyException(f"has {name}, which this level does not have; need {instead}")

    return Constraint(f"no `{name}`", check)


def counted(name: str) -> Constraint:
    """An attribute, if it is there, is a number from 0 on."""

    def check(op: Operation, facts: ModuleFacts) -> None:
        value = op.attributes.get(name)
        if value is not None and not (isinstance(value, IntegerAttr) and value.value.data >= 0):
            raise VerifyException(f"{name} = {value}; need a number from 0 on, as 3 : i64")

    return Constraint(f"`{name}` is a number from 0 on", check)


def names(attribute: str, what: str, kind: type[Operation]) -> Constraint:
    """An attribute, if it is there, names operations of a class at the top of the module.

    Args:
        attribute: its name; it holds a symbol or a list of symbols.
        what: what such an operation is called: "variable".
        kind: its class.
    """

    def check(op: Operation, facts: ModuleFacts) -> None:
        symbols = facts.symbols
        for name in symbols_in(op.properties.get(attribute)):
            if not isinstance(symbols.get(name), kind):
                known = (each for each, other in symbols.items() if isinstance(other, kind))
                raise VerifyException(f"no {what} @{name}{suggestion(name, known)}")

    return Constraint(f"`{attribute}` names a {what}", check)


def holds(says: str) -> Callable[[Check], Constraint]:
    """Make a function a constraint.

    Args:
        says: the condition, as the reference prints it.
    """
    return lambda check: Constraint(says, check)


def _listed(ops: Sequence[str]) -> str:
    return " or ".join(f"`{each}`" for each in ops)
