"""Verifies an operation again only if its form has changed since it passed.

A compile verifies the program after every pass, and a pass leaves most operations as they are.
"""

from __future__ import annotations

from xdsl.ir import Operation, OpTrait
from xdsl.irdl import IRDLOperation
from xdsl.traits import SymbolOpInterface

_PASSED = "_passed_in_form"

_decided_by_form: set[type[Operation]] = set()

_traits: dict[type[Operation], frozenset[OpTrait]] = {}
"""The traits of each class that was asked for, if none of them looks at other operations."""


def verified_by_form(*op_classes: type[Operation]) -> None:
    """Declare that a verifier reads nothing but types, properties and attributes of its operation.

    This does not hold for subclasses, which may have verifiers of their own. Operations with
    regions or successors, and those with traits that look at other operations, are verified each
    time.
    """
    _decided_by_form.update(op_classes)


def verify_if_changed(op: Operation) -> None:
    """Raise VerifyException if an operation is not well formed.

    An operation of a declared class is not checked again in the form in which it passed.
    """
    if op.regions or not _form_decides(type(op)):
        op.verify_()
        return
    operands, properties, attributes = op.operands, op.properties, op.attributes
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


def _form_decides(op_class: type[Operation]) -> bool:
    if op_class not in _decided_by_form or not issubclass(op_class, IRDLOperation):
        return False
    traits = op_class.traits.traits
    # Traits can be added later.
    if _traits.get(op_class) is not traits:
        checks = (each for each in traits if type(each).verify is not OpTrait.verify)
        if not all(type(each) is SymbolOpInterface for each in checks):
            return False
        _traits[op_class] = traits
    return True
