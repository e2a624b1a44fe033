"""Which reduction dimensions may be cut into parts that need padding."""

from __future__ import annotations

from collections.abc import Iterable

from ...dialects.structured import Structure
from ...ir.errors import InputError
from ...ir.geometry.space import can_split_unevenly
from ...ir.user_entries import add_entry

CARRIES_IDENTITY: dict[str, frozenset[str]] = {
    "sum": frozenset(
        ("identity", "mul", "relu", "leaky_relu", "abs", "neg", "square", "sqrt", "tanh", "scale")
    ),
    "max": frozenset(("identity",)),
    "min": frozenset(("identity",)),
    "prod": frozenset(("identity", "abs", "square", "sqrt", "reciprocal")),
}
"""For each combiner, the functions that map its identity element to itself.

A function of several operands is listed if one identity operand is enough.
"""

USERS_CARRY_IDENTITY: dict[str, frozenset[str]] = {}
"""For each user's function, the combiners whose identity element it maps to itself."""


def register_identity(function: str, combiners: Iterable[str], owner: str) -> None:
    """Record the combiners whose identity element a user's function maps to itself.

    Raises InputError for a combiner that does not exist.
    """
    unknown = sorted(set(combiners) - set(CARRIES_IDENTITY))
    if unknown:
        raise InputError(
            f"{owner}: scalar function {function!r}: carries the identity of {unknown[0]!r}; "
            f"need combiners of {', '.join(CARRIES_IDENTITY)}"
        )
    add_entry(USERS_CARRY_IDENTITY, "identity of", function, frozenset(combiners), owner)


def carries_identity(function: str, combiner: str) -> bool:
    """Whether a function maps identity elements of a combiner to an identity element."""
    users = USERS_CARRY_IDENTITY.get(function, frozenset())
    return function in CARRIES_IDENTITY[combiner] or combiner in users


def can_pad(structure: Structure, dim: int) -> bool:
    """Whether the parts of a reduction dimension may be padded without changing the result.

    Every operand that has the dimension is padded with the combiner's identity element, so the
    body's function must map that element to itself.
    """
    combiner, space = structure.body.combiner, structure.space
    touches = [dim in access.dims() for access in space.operands]
    return (
        combiner is not None
        and any(touches)
        and carries_identity(structure.body.function, combiner)
        and can_split_unevenly(space, dim)
        and all(
            not 0 <= axis.offset + a * space.dims[dim].size < axis.size
            for access in space.operands
            for axis in access.axes
            for d, a in axis.terms
            if d == dim
        )
        and all(
            access.fill == structure.body.identity
            for access, touched in zip(space.operands, touches, strict=True)
            if touched and any(axis.outside == "fill" for axis in access.axes)
        )
    )
