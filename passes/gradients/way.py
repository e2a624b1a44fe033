"""The operations that gradients pass through between a loss and the values it depends on."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import nn


def is_float(value: SSAValue) -> bool:
    """Whether a value is a tensor of floats; gradients flow through no others."""
    type_ = value.type
    return isinstance(getattr(type_, "element_type", None), AnyFloat)


def on_the_way(
    block: Block, start: Collection[SSAValue], end: Collection[SSAValue]
) -> list[Operation]:
    """The operations of a block through which values of `end` depend on values of `start`.

    Only dependence through floats counts: an integer has no gradient, and passes none on. But
    integers that hold the bits of a float count until they become a float again, so that an
    `nn.bitcast` in between is found.
    """
    known, bits, readers = set(start), set[SSAValue](), list[Operation]()
    for op in block.ops:
        given, is_cast = read_by(op), isinstance(op, nn.BitCastOp)
        follows, holds = any(v in known for v in given), any(v in bits for v in given)
        cast = is_cast and (follows or holds)
        floats = [v for v in op.results if is_float(v) and (follows or cast)]
        others = [v for v in op.results if not is_float(v) and (holds or cast)]
        if floats or others:
            readers.append(op)
        known.update(floats)
        bits.update(others)
    return _leading_to(readers, end, bits)[0]


def reached(block: Block, start: Iterable[SSAValue]) -> set[SSAValue]:
    """The floats of a block that depend on values of `start`, including these."""
    known = set(start)
    for op in block.ops:
        if any(v in known for v in read_by(op) if is_float(v)):
            known.update(v for v in op.results if is_float(v))
    return known


def needed(block: Block, end: Iterable[SSAValue]) -> set[SSAValue]:
    """The floats on which values of `end` depend, including these."""
    return _leading_to(list(block.ops), end, ())[1]


def _leading_to(
    ops: list[Operation], end: Iterable[SSAValue], bits: Collection[SSAValue]
) -> tuple[list[Operation], set[SSAValue]]:
    """The operations and values on which `end` depends, through floats or bits of floats."""
    found, values = list[Operation](), set(end)
    for op in reversed(ops):
        if any(v in values for v in op.results if is_float(v) or v in bits):
            found.append(op)
            values.update(v for v in read_by(op) if is_float(v) or v in bits)
    return found[::-1], values


def read_by(op: Operation) -> list[SSAValue]:
    """The values that an operation reads, including the reads in its regions."""
    inner = op.walk() if op.regions else (op,)
    return [v for each in inner for v in each.operands]
