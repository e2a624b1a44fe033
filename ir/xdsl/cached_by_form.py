"""Answers about operations, which are the same for all that are alike."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from xdsl.ir import Attribute, Operation

Op = TypeVar("Op", bound=Operation)
T = TypeVar("T")

_MOST = 4096
"""Answers that are kept."""


def cached_by_form(answer: Callable[[Op], T]) -> Callable[[Op], T]:
    """Keep what an operation without regions answers, for others of its class.

    answer: looks at nothing but the types of operands and results, properties and attributes.
    Alike are those of the very same attributes, which is quick to see: types are made once, and
    copies of an operation share the rest. What operations without operands answer is not kept,
    since constants have attributes of any size.
    """
    known: dict[tuple[object, ...], tuple[tuple[Attribute, ...], T]] = {}

    @wraps(answer)
    def kept(op: Op) -> T:
        operands = op.operands
        if not operands or op.regions:
            return answer(op)
        properties, attributes = op.properties, op.attributes
        parts = (
            *[value.type for value in operands],
            *[value.type for value in op.results],
            *properties.values(),
            *attributes.values(),
        )
        key = (type(op), len(operands), *properties, len(properties), *attributes, *map(id, parts))
        found = known.get(key)
        if found is None:
            if len(known) >= _MOST:
                known.clear()
            # The parts are kept as well, so that no others bear their identities.
            found = known[key] = parts, answer(op)
        return found[1]

    return kept
