"""Memory limits that no plan of an operator keeps, and the limits that replace them.

They are recorded as an attribute of the module, for all levels, reports and saved programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import cast

from xdsl.dialects.builtin import AnyFloat, ArrayAttr, DictionaryAttr, FloatAttr, StringAttr, f64
from xdsl.ir import Attribute, Operation

from ...backends.target import Target
from ...ir.provenance import place
from ...ir.upstream import ModuleOp
from .choice import Choice
from .limits import Limits
from .terms import relaxed

ATTRIBUTE = "abele.relaxed"
"""The module's attribute."""

NAMES = ("operator", "limit", "relaxed_to", "taken")
"""The keys of each entry."""


@dataclass(frozen=True)
class Relaxed:
    """An operator of which no plan keeps the memory limit.

    limit, relaxed_to and taken are shares of a tile.

    Attributes:
        relaxed_to: the limit, doubled until a plan keeps it.
        taken: the share that this plan takes.
    """

    operator: str
    limit: float
    relaxed_to: float
    taken: float

    def __str__(self) -> str:
        return (
            f"{self.operator}: {self.limit:.3g} -> {self.relaxed_to:.3g} of a tile "
            f"(takes {self.taken:.3g})"
        )


def relaxed_limits(
    choices: Mapping[Operation, Choice], limits: Limits, target: Target
) -> tuple[Relaxed, ...]:
    """The operators whose plans exceed their limit.

    A limit of 0 asks for the plan with the fewest bytes, and is never exceeded.
    """
    usable = target.usable_bytes_per_tile
    found: list[Relaxed] = []
    for op, choice in choices.items():
        limit = int(limits.proportion_of(op) * usable)
        if choice.temporary_bytes > limit > 0:
            to = relaxed(limit, choice.temporary_bytes)
            parts = (round(n / usable, 4) for n in (limit, to, choice.temporary_bytes))
            found.append(Relaxed(place(op), *parts))
    return tuple(found)


def write_relaxed(module: ModuleOp, found: tuple[Relaxed, ...]) -> None:
    """Record the relaxed limits on a module."""
    if not found:
        module.attributes.pop(ATTRIBUTE, None)
        return
    module.attributes[ATTRIBUTE] = ArrayAttr(
        [
            DictionaryAttr(
                {
                    name: StringAttr(value) if isinstance(value, str) else FloatAttr(value, f64)
                    for name, value in zip(NAMES, astuple(each), strict=True)
                }
            )
            for each in found
        ]
    )


def read_relaxed(module: ModuleOp) -> tuple[Relaxed, ...]:
    """The limits recorded on a module. Entries of another form are skipped."""
    written = module.attributes.get(ATTRIBUTE)
    if not isinstance(written, ArrayAttr):
        return ()
    found: list[Relaxed] = []
    for each in cast(ArrayAttr[Attribute], written):
        if not isinstance(each, DictionaryAttr):
            continue
        name = each.data.get(NAMES[0])
        parts = [_number(each.data.get(key)) for key in NAMES[1:]]
        if isinstance(name, StringAttr) and None not in parts:
            found.append(Relaxed(name.data, *(part or 0.0 for part in parts)))
    return tuple(found)


def _number(written: Attribute | None) -> float | None:
    if not isinstance(written, FloatAttr):
        return None
    return cast("FloatAttr[AnyFloat]", written).value.data
