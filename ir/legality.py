"""What a level demands of its operations: rows of constraints, which are data.

A level is a table of rows. A row names operations, or whole dialects, and says what holds of them
at this level. `verify` checks the rows, and the reference prints them. What holds of an operation
at every level stands in its class instead.

    row("tile.copy tile.vertices", inside("tile.superstep"))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias, TypeVar, cast

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Operation

from .upstream import ModuleOp
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
        return {
            name.data: op
            for op in self.module.body.block.ops
            if isinstance(name := op.properties.get("sym_name"), StringAttr)
        }

    def get(self, find: Callable[[ModuleFacts], T]) -> T:
        """What a function finds out about the module."""
        if find not in self._found:
            self._found[find] = find(self)
        return cast(T, self._found[find])


Problem: TypeAlias = Callable[[Any, ModuleFacts], "str | None"]
"""Returns what is wrong with an operation, what it was and what is allowed; None if nothing is."""


@dataclass(frozen=True)
class Constraint:
    """One condition on an operation.

    Attributes:
        says: the condition, as the reference prints it: "inside `tile.superstep`".
        problem: checks it.
    """

    says: str
    problem: Problem = field(repr=False)


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
    """The rows of a level, by operation."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = tuple(rows)
        self.names = frozenset(name for each in self.rows for name in each.ops)
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


# Constraints


@dataclass(frozen=True)
class Kind:
    """The types of values that a level has.

    Attributes:
        says: what a value of such a type is, in words: "a tensor of static shape".
        has: whether a type is one of them.
        advice: what to do with a value of any other type.
    """

    says: str
    has: Callable[[Attribute], bool] = field(repr=False)
    advice: str = ""


def _problem_of_type(role: str, index: int, type_: Attribute, kind: Kind) -> str:
    advice = f"; {kind.advice}" if kind.advice else ""
    return f"{role} {index} is of type {type_}; need {kind.says}{advice}"


def operands(kind: Kind) -> Constraint:
    """The operands are of a kind."""

    def problem(op: Operation, facts: ModuleFacts) -> str | None:
        for i, value in enumerate(operands_of(op)):
            if not kind.has(value.type):
                return _problem_of_type("operand", i, value.type, kind)
        return None

    return Constraint(f"operands: {kind.says}", problem)


def results(kind: Kind) -> Constraint:
    """The results, and the arguments of regions, are of a kind."""

    def problem(op: Operation, facts: ModuleFacts) -> str | None:
        for i, value in enumerate(op.results):
            if not kind.has(value.type):
                return _problem_of_type("result", i, value.type, kind)
        for region in op.regions:
            for block in region.blocks:
                for i, value in enumerate(block.args):
                    if not kind.has(value.type):
                        return _problem_of_type("argument", i, value.type, kind)
        return None

    return Constraint(f"results and arguments: {kind.says}", problem)


def inside(*ops: str, why: str = "") -> Constraint:
    """The operation stands directly inside one of these.

    Args:
        ops: names of operations.
        why: why it cannot stand elsewhere.
    """
    listed = " or ".join(ops)

    def problem(op: Operation, facts: ModuleFacts) -> str | None:
        parent = op.parent_op()
        if parent is not None and parent.name in ops:
            return None
        where = "nothing" if parent is None else parent.name
        return f"inside {where}; need {listed} around it" + (f", as {why}" if why else "")

    return Constraint("inside " + " or ".join(f"`{each}`" for each in ops), problem)


def without(name: str, why: str) -> Constraint:
    """The operation has no attribute of a name.

    Args:
        name: the attribute's name.
        why: where what it says stands instead.
    """

    def problem(op: Operation, facts: ModuleFacts) -> str | None:
        if name in op.properties or name in op.attributes:
            return f"has {name}; need none, as {why}"
        return None

    return Constraint(f"no `{name}`", problem)


def holds(says: str) -> Callable[[Problem], Constraint]:
    """Make a function a constraint.

    Args:
        says: the condition in words.
    """
    return lambda problem: Constraint(says, problem)
