"""A conversion that goes on after what it cannot convert, and names all of it at its end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from xdsl.ir import Operation, SSAValue

from .conversion import Conversion, Patterns
from .provenance import place
from .support.errors import InputError
from .upstream import VerifyException

MOST_LISTED = 50
"""The most operations that an error lists."""


class Uncovered(Exception):
    """What a pattern cannot convert. Its text says what it was, and what is covered."""


class ThoroughConversion(Conversion):
    """A conversion that lists every operation without a pattern, or whose pattern gives up.

    Operations that read a value of such an operation are left out, and are not listed.

    Attributes:
        refused: the operations that are not converted, with the reason.
        lost: the old values that have no new one.
    """

    def __init__(self, patterns: Patterns[Any], to: str) -> None:
        super().__init__(patterns, to)
        self.refused: list[tuple[Operation, str]] = []
        self.lost: set[SSAValue] = set()

    def convert(self, op: Operation) -> None:
        """Convert one operation, or note that it is not converted."""
        before = len(self.refused)
        if not self.lost.isdisjoint(values_read(op)):
            self.lost.update(op.results)
            return
        try:
            if self.patterns.of(type(op)) is None:
                raise Uncovered(f"no conversion to {self.to}")
            super().convert(op)
        except (Uncovered, VerifyException, ValueError) as error:
            self.refused.append((op, str(error)))
        if len(self.refused) > before:
            self.lost.update(op.results)

    def finish(self) -> None:
        """Raise InputError if an operation was not converted."""
        if not self.refused:
            return
        lines = [f"{place(op)}: {op_name(op)}: {why}" for op, why in self.refused[:MOST_LISTED]]
        more = len(self.refused) - len(lines)
        if more:
            lines.append(f"and {more} more")
        count = f"{len(self.refused)} operations are" if len(lines) > 1 else "1 operation is"
        raise InputError("\n".join([f"{count} not covered:", *lines]))


def op_name(op: Operation) -> str:
    """The name of an operation, also of one that no dialect has."""
    given = op.attributes.get("op_name__")
    return op.name if given is None else str(getattr(given, "data", given))


def values_read(op: Operation) -> Iterable[SSAValue]:
    """The operands of an operation and of the operations inside it."""
    yield from op.operands
    for region in op.regions:
        for inner in region.walk():
            yield from inner.operands
