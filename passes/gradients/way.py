"""Which operations gradients pass through on their way from a loss to what it depends on."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Block, Operation, SSAValue


def is_float(value: SSAValue) -> bool:
    """Whether a value is a tensor of floats; gradients flow through no others."""
    type_ = value.type
    return isinstance(getattr(type_, "element_type", None), AnyFloat)


def on_the_way(
    block: Block, start: Collection[SSAValue], end: Collection[SSAValue]
) -> list[Operation]:
    """The operations of a block through which values of `end` depend on some of `start`.

    Only dependence through floats counts: an integer has no gradient, and passes none on.
    """
    known, readers = set(start), list[Operation]()
    for op in block.ops:
        if any(v in known for v in _reads(op)):
            readers.append(op)
            known.update(v for v in op.results if is_float(v))
    return _leading_to(readers, end)[0]


def reached(block: Block, start: Iterable[SSAValue]) -> set[SSAValue]:
    """The floats of a block that depend on some of `start`, and these themselves."""
    known = set(start)
    for op in block.ops:
        if any(v in known for v in _reads(op)):
            known.update(v for v in op.results if is_float(v))
    return known


def needed(block: Block, end: Iterable[SSAValue]) -> set[SSAValue]:
    """The floats that some of `end` depend on, and these themselves."""
    return _leading_to(list(block.ops), end)[1]


def _leading_to(
    ops: list[Operation], end: Iterable[SSAValue]
) -> tuple[list[Operation], set[SSAValue]]:
    found, values = list[Operation](), set(end)
    for op in reversed(ops):
        if any(v in values for v in op.results if is_float(v)):
            found.append(op)
            values.update(_reads(op))
    return found[::-1], values


def _reads(op: Operation) -> list[SSAValue]:
    """The floats that an operation reads, those of its regions included."""
    inner = op.walk() if op.regions else (op,)
    return [v for each in inner for v in each.operands if is_float(v)]
