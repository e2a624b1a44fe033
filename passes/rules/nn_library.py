"""Classes, guards and functions that abele's own rules use on the operations of nn."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from xdsl.dialects.builtin import AnyFloat, Float32Type, Float64Type
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import Pure

from ...dialects import nn
from ...dialects.blob_attr import BlobAttr
from ...dialects.nn.elementwise import BinaryOp, ParametrisedOp, UnaryOp
from ...dialects.settable import changing_states
from ...dialects.slopes import ZERO, Values, call
from ...ir.blob import Blob
from ...ir.rules import function, guard, means, once_a_pass, op_class

# Classes of operations


@op_class
def structured(cls: type[Operation]) -> bool:
    """Operations with a space and a body."""
    return issubclass(cls, nn.ChainableOp)


@op_class
def contraction(cls: type[Operation]) -> bool:
    """Sums of products."""
    return cls in nn.CONTRACTIONS


@op_class
def unary(cls: type[Operation]) -> bool:
    """Elementwise functions of one tensor."""
    return issubclass(cls, UnaryOp | ParametrisedOp)


@op_class
def binary(cls: type[Operation]) -> bool:
    """Elementwise functions of two tensors."""
    return issubclass(cls, BinaryOp)


# Constants


def _made_of(value: SSAValue, needs: Callable[[Operation], Iterable[SSAValue] | None]) -> bool:
    """Whether a value is computed only by operations of one kind, back to its sources.

    Block arguments are not of the kind.

    Args:
        needs: returns the operands that must be of the same kind for an operation of the kind, else
            None.
    """
    pending, seen = [value], set[SSAValue]()
    while pending:
        each = pending.pop()
        if each in seen:
            continue
        seen.add(each)
        further = None if isinstance(each.owner, Block) else needs(each.owner)
        if further is None:
            return False
        pending += further
    return True


@means("program")
@guard
def fixed(value: SSAValue) -> bool:
    """Whether a value is the same in every run, so that it can be computed before the first one."""

    def needs(op: Operation) -> Iterable[SSAValue] | None:
        if isinstance(op, nn.LoadOp):
            changes = op.state.string_value() in _changing(_module_of(op))
        else:
            changes = not op.has_trait(Pure) or bool(op.regions)
        return None if changes else op.operands

    return _made_of(value, needs)


@once_a_pass
def _changing(module: Operation) -> frozenset[str]:
    """The names of the states that may change."""
    return changing_states(module)


def _module_of(op: Operation) -> Operation:
    module = op.get_toplevel_object()
    assert isinstance(module, Operation)
    return module


@means("types")
@guard
def uniform(blob: Attribute) -> bool:
    """Whether all elements of a constant are the same finite number."""
    held = _blob_in(blob)
    if held is None or not held.array.size:
        return False
    values = held.data.stored
    return bool(np.all(values == values[0]) and np.isfinite(values[0].astype(np.float64)))


@means("types")
@function
def only_element(blob: Attribute) -> float:
    """The value of all elements of a uniform constant."""
    held = _blob_in(blob)
    assert held is not None
    return float(held.data.stored[0])


def _blob_in(attribute: Attribute) -> BlobAttr | None:
    """The blob of a constant, which may be in an attribute that says more of it."""
    found = attribute if isinstance(attribute, BlobAttr) else getattr(attribute, "values", None)
    return found if isinstance(found, BlobAttr) else None


@means("types")
@guard
def one_number(blob: Attribute) -> bool:
    """Whether a constant has several elements, all with the same bits."""
    if not isinstance(blob, BlobAttr) or blob.array.size < 2:
        return False
    stored = blob.data.stored
    bits = stored.view(f"V{stored.itemsize}")
    return bool(np.all(bits == bits[0]))


@means("types")
@function
def number(blob: Attribute) -> Attribute:
    """The first element of a constant, as a tensor without axes."""
    assert isinstance(blob, BlobAttr)
    return BlobAttr(Blob(blob.data.stored[0].reshape(())))


@means("types")
@guard
def is_wide(value: SSAValue) -> bool:
    """Whether a tensor has floats of 32 bits or more, whose products do not overflow."""
    return isinstance(nn.element_of(value), Float32Type | Float64Type)


@means("types")
@guard
def is_float(value: SSAValue) -> bool:
    """Whether a tensor has floating-point elements."""
    return isinstance(getattr(value.type, "element_type", None), AnyFloat)


_UNSIGNED = (nn.AbsOp, nn.SquareOp, nn.ExpOp, nn.SigmoidOp)
"""Operations whose results have no minus sign, whatever they read."""

_KEEP_UNSIGNED = (
    nn.AddOp,
    nn.MulOp,
    nn.ScaleOp,
    nn.ShiftOp,
    nn.SqrtOp,
    nn.PoolOp,
    nn.ReduceOp,
    nn.ReshapeOp,
    nn.TransposeOp,
    nn.ExpandOp,
)
"""Operations whose results have no minus sign if nothing that they read has one."""


_ELEMENT = Values().a
_NO_SIGN = (
    call("logical_not", call("less", _ELEMENT, ZERO)),
    # The reciprocal of -0 is minus infinity.
    call("logical_not", call("less", call("reciprocal", _ELEMENT), ZERO)),
)
"""What is true of an element without a minus sign."""


@means("elements", *_NO_SIGN, only=is_float)
@guard
def unsigned(value: SSAValue) -> bool:
    """Whether every element is a float that is positive, +0 or NaN: none can be negative or -0."""
    return _made_of(value, _read_unsigned)


def _read_unsigned(op: Operation) -> Iterable[SSAValue] | None:
    """The operands that must be unsigned for the results to be unsigned; None if that does not
    suffice.
    """
    if not all(map(is_float, op.results)):
        # Sums, products and magnitudes of integers wrap around.
        return None
    if isinstance(op, nn.ConstantOp):
        return None if np.signbit(op.value.array.astype(np.float64)).any() else ()
    if not isinstance(op, _KEEP_UNSIGNED):
        return () if isinstance(op, _UNSIGNED) else None
    if isinstance(op, ParametrisedOp) and np.signbit(op.parameters).any():
        return None
    # Over no elements, a sum is 0, but a maximum is minus infinity.
    if isinstance(op, nn.PoolOp | nn.ReduceOp) and op.combiner.data != "sum":
        return None
    squares = isinstance(op, nn.MulOp) and op.lhs is op.rhs
    return () if squares else op.operands


# Shapes


@means("types")
@function
def permuted(values: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    """A list in another order: element i is values[order[i]]."""
    return tuple(values[i] for i in order)


@means("types")
@function
def larger(a: float, b: float) -> float:
    """The larger of two numbers."""
    return max(a, b)


@means("types")
@function
def smaller(a: float, b: float) -> float:
    """The smaller of two numbers."""
    return min(a, b)
