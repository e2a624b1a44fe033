"""A cache for functions of an operation whose result depends only on the operation's form.

The form is the class, the types of operands and results, the properties and the attributes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from xdsl.ir import Attribute, Operation

from .fields import operands_of

Op = TypeVar("Op", bound=Operation)
T = TypeVar("T")

_MOST = 4096
"""The number of results to keep."""


def cached_by_form(answer: Callable[[Op], T]) -> Callable[[Op], T]:
    """Decorator that keeps the results of a function for operations of the same form.

    Args:
        answer: depends only on the class of the operation, the types of its operands and results,
            its properties and its attributes. Forms are compared by the identity of these
            attributes, which is fast. It is also enough: equal types are one object, and copies of
            an operation share the rest. Nothing is kept for operations with regions, nor for those
            without operands, because constants have attributes of any size.
    """
    known: dict[tuple[object, ...], tuple[tuple[Attribute, ...], T]] = {}

    @wraps(answer)
    def kept(op: Op) -> T:
        operands = operands_of(op)
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
            # Keep the parts alive too, so that no other objects get their identities.
            found = known[key] = parts, answer(op)
        return found[1]

    return kept
