"""The operations that rules may name, and their definitions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, runtime_checkable

from xdsl.ir import Attribute, Operation
from xdsl.irdl import (
    AttrOrPropDef,
    AttrSizedOperandSegments,
    IRDLOperation,
    OperandDef,
    OptOperandDef,
    OptPropertyDef,
    OptResultDef,
    PropertyDef,
    VarOperandDef,
    VarResultDef,
)

from ..context import AbeleContext
from ..level import Level
from ..upstream import Context
from .values import kind_of

_PREFIX = re.compile(r"\b([a-z_][a-z_0-9]*)\.[a-zA-Z_]")
"""The dialect in the name of an operation."""


@dataclass(frozen=True)
class Attributed:
    """An attribute in an operation's definition.

    Attributes:
        kind: as rules see it.
        implied: what an absent attribute means, where the definition does not write it.
        is_outdated: whether only older versions of the operation have it.
    """

    name: str
    definition: AttrOrPropDef
    is_property: bool
    implied: Attribute | None = None
    is_outdated: bool = False

    @cached_property
    def kind(self) -> str:
        """One of the library's KINDS."""
        return kind_of(self.definition.constr)

    @property
    def is_optional(self) -> bool:
        """True if an operation may lack the attribute."""
        return isinstance(self.definition, OptPropertyDef) or not self.is_property

    @property
    def default(self) -> Attribute | None:
        """Its value if it is not written."""
        return self.definition.default_value if self.implied is None else self.implied


@dataclass(frozen=True)
class OpInfo:
    """The definition of an operation.

    Attributes:
        least, most: the fewest and the most operands; None for no limit. The same holds for
            results.
    """

    cls: type[Operation]
    least: int
    most: int | None
    least_results: int
    most_results: int | None
    attributes: dict[str, Attributed]
    regions: int
    segmented: bool

    def takes(self, count: int, or_more: bool = False) -> bool:
        """Whether the operation can have this many operands.

        Args:
            or_more: or more than that.
        """
        return (self.most is None or count <= self.most) and (or_more or count >= self.least)

    @property
    def name(self) -> str:
        """The operation's name."""
        return self.cls.name

    @property
    def one_result(self) -> bool:
        """True if it always has exactly one result."""
        return self.least_results == self.most_results == 1


@runtime_checkable
class Counted(Protocol):
    """An operation whose operands, or results, are one list, and which knows how long it can be."""

    @classmethod
    def operand_range(cls) -> tuple[int, int | None]:
        """The fewest and the most operands; None for no limit."""
        ...

    @classmethod
    def result_range(cls) -> tuple[int, int | None]:
        """The fewest and the most results; None for no limit."""
        ...


@runtime_checkable
class Versioned(Protocol):
    """An operation of which there are several versions."""

    @classmethod
    def outdated(cls) -> frozenset[str]:
        """The attributes that the latest version lacks."""
        ...


def _nothing(name: str) -> Attribute | None:
    return None


def op_info(cls: type[Operation]) -> OpInfo:
    """The definition of an operation."""
    if not issubclass(cls, IRDLOperation):
        return OpInfo(cls, 0, None, 0, None, {}, 0, segmented=False)
    definition = cls.get_irdl_definition()
    results = [each for _, each in definition.results]
    least, most = _operand_counts(each for _, each in definition.operands)
    fixed = sum(not isinstance(each, VarResultDef) for each in results)
    several = any(
        isinstance(each, VarResultDef) and not isinstance(each, OptResultDef) for each in results
    )
    implied = getattr(cls, "implied", _nothing)
    outdated = cls.outdated() if issubclass(cls, Versioned) else frozenset[str]()
    attributes: dict[str, Attributed] = {
        name: Attributed(name, each, isinstance(each, PropertyDef), implied(name), name in outdated)
        for name, each in (*definition.properties.items(), *definition.attributes.items())
    }
    least_results, most_results = fixed, None if several else len(results)
    # The operations of some dialects have one list of operands, of which they know more.
    if issubclass(cls, Counted):
        least, most = cls.operand_range()
        least_results, most_results = cls.result_range()
    return OpInfo(
        cls,
        least,
        most,
        least_results,
        most_results,
        attributes,
        len(definition.regions),
        any(isinstance(each, AttrSizedOperandSegments) for each in definition.options),
    )


def _operand_counts(definitions: Iterable[OperandDef]) -> tuple[int, int | None]:
    """The fewest and the most operands; None without a limit."""
    known = list(definitions)
    optional = sum(isinstance(each, OptOperandDef) for each in known)
    required = sum(not isinstance(each, VarOperandDef) for each in known)
    # Any other definition is a list of any length.
    bounded = required + optional == len(known)
    return required, required + optional if bounded else None


@dataclass
class Vocabulary:
    """The operations of a context's dialects, and their levels."""

    context: Context
    _infos: dict[type[Operation], OpInfo] = field(default_factory=dict[type[Operation], OpInfo])

    @cached_property
    def ops(self) -> dict[str, type[Operation]]:
        """The classes by name."""
        return {cls.name: cls for cls in self.context.loaded_ops}

    def load_named(self, text: str) -> None:
        """Load the dialects that a text names and that the context only knows by name."""
        loaded = {each.name for each in self.context.loaded_dialects}
        registered = set(self.context.registered_dialect_names) - loaded
        for name in sorted(registered & set(_PREFIX.findall(text))):
            self.context.load_registered_dialect(name)
            vars(self).pop("ops", None)

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels that a program passes through, from the highest to the lowest."""
        return self.context.levels if isinstance(self.context, AbeleContext) else ()

    @property
    def sources(self) -> tuple[Level, ...]:
        """The levels above those, on which a program of another compiler is."""
        return self.context.sources if isinstance(self.context, AbeleContext) else ()

    def lowers_to(self, op_name: str) -> Level | None:
        """The level that a lower rule of an operation ends in; None if it has no such level.

        An operation of a level's dialect ends in the level below, and none is below the lowest. An
        operation of a user's dialect stands above all levels, and ends in the highest. An operation
        of a dialect that belongs to every level cannot be lowered.
        """
        level = self.level_of(op_name)
        if level is None:
            own = {name.partition(".")[0] for each in self.levels for name in each.own}
            is_users = op_name.partition(".")[0] not in own
            return self.levels[0] if is_users and self.levels else None
        below = self.levels.index(level) + 1
        return self.levels[below] if below < len(self.levels) else None

    def info(self, cls: type[Operation]) -> OpInfo:
        """The definition of an operation."""
        if cls not in self._infos:
            self._infos[cls] = op_info(cls)
        return self._infos[cls]

    def members(self, belongs: Callable[[type[Operation]], bool]) -> tuple[type[Operation], ...]:
        """The operations of a class written in Python."""
        return tuple(cls for cls in self.ops.values() if belongs(cls))

    def level_of(self, op_name: str) -> Level | None:
        """The level whose dialect an operation belongs to; None if it belongs to every level."""
        dialect = op_name.partition(".")[0]
        return next((level for level in self.levels if level.name == dialect), None)


def common(infos: Sequence[OpInfo], name: str) -> Attributed | None:
    """The attribute of a name that all operations have; None if one of them lacks it.

    If they disagree on its kind, the attribute of the first operation is returned.
    """
    found = [info.attributes.get(name) for info in infos]
    return found[0] if found and all(each is not None for each in found) else None
