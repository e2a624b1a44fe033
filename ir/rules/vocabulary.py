"""The operations that rules may name, and their definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

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


@dataclass(frozen=True)
class Attributed:
    """An attribute in an operation's definition.

    Attributes:
        kind: as rules see it.
    """

    name: str
    definition: AttrOrPropDef
    is_property: bool

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
        return self.definition.default_value


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
    attributes: dict[str, Attributed] = {
        name: Attributed(name, each, isinstance(each, PropertyDef))
        for name, each in (*definition.properties.items(), *definition.attributes.items())
    }
    return OpInfo(
        cls,
        least,
        most,
        fixed,
        None if several else len(results),
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

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels that a program passes through, from the highest to the lowest."""
        return self.context.levels if isinstance(self.context, AbeleContext) else ()

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
