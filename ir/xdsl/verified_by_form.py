"""Verifies an operation again only if its form has changed since it passed.

A compile verifies the program after every pass, and a pass leaves most operations as they are.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation, OpTrait
from xdsl.irdl import IRDLOperation
from xdsl.traits import SymbolOpInterface

from .fields import operands_of

_PASSED = "_passed_in_form"

_decided_by_form: set[type[Operation]] = set()

_checks: dict[
    type[Operation], tuple[frozenset[OpTrait], tuple[Callable[[Operation], None], ...]]
] = {}
"""The traits of each class that was asked for, and the checks of those that look at other
operations."""


def verified_by_form(*op_classes: type[Operation]) -> None:
    """Declare that a verifier reads nothing but types, properties and attributes of its operation.

    This does not hold for subclasses, which may have verifiers of their own. Operations with
    regions or successors are verified each time, and traits that look at other operations check
    each time.
    """
    _decided_by_form.update(op_classes)


def verify_if_changed(op: Operation) -> None:
    """Raise VerifyException if an operation is not well formed.

    An operation of a declared class is not checked again in the form in which it passed, except by
    traits that look at other operations.
    """
    checks = None if op.regions else _checks_beyond_form(type(op))
    if checks is None:
        op.verify_()
        return
    operands, properties, attributes = operands_of(op), op.properties, op.attributes
    # Tuples compare their entries by identity first.
    form = (
        *(len(operands), len(properties)),
        *[value.type for value in operands],
        *[value.type for value in op.results],
        *properties,
        *properties.values(),
        *attributes,
        *attributes.values(),
    )
    if getattr(op, _PASSED, None) != form:
        op.verify_()
        setattr(op, _PASSED, form)
        return
    for check in checks:
        check(op)


def _checks_beyond_form(
    op_class: type[Operation],
) -> tuple[Callable[[Operation], None], ...] | None:
    """The checks of a class that look at other operations; None if its form decides nothing."""
    if op_class not in _decided_by_form or not issubclass(op_class, IRDLOperation):
        return None
    traits = op_class.traits.traits
    known = _checks.get(op_class)
    # Traits can be added later.
    if known is None or known[0] is not traits:
        local = (OpTrait.verify, SymbolOpInterface.verify)
        beyond = tuple(each.verify for each in traits if type(each).verify not in local)
        known = _checks[op_class] = traits, beyond
    return known[1]
