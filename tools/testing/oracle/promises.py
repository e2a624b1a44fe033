"""Promises of passes about the structure of a program, which its values cannot show.

A pass that gives up precision is held to the errors of the program that it returns, and these grow
with every value that it narrows. So values do not show that it has narrowed too many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from xdsl.ir import Attribute, Operation

from ....dialects import nn
from ....dialects.dtypes import numpy_dtype
from ....dialects.structured import Structured
from ....ir.provenance import place
from ....ir.support.number_kinds import is_floating
from ....ir.upstream import ModuleOp

WIDE = 4
"""Bytes of the smallest float type in which a sum should be kept."""


def narrowed_sum(before: ModuleOp, after: ModuleOp) -> str | None:
    """A message about a sum that is narrower than before the passes; None if there is none.

    A sum adds the elements of one operand, along all or part of a dimension. A sum that was narrow
    before may stay narrow, wherever it is now.
    """
    allowed = Counter(element for _, element in _narrow_sums(before))
    for op, element in _narrow_sums(after):
        if not allowed[element]:
            return (
                f"{op.name} at {place(op)} adds up elements of {element}; need float32: the pass "
                "declares that sums stay wide"
            )
        allowed[element] -= 1
    return None


def _narrow_sums(module: ModuleOp) -> Iterator[tuple[Operation, Attribute]]:
    """The sums of a module whose operand or result is a float of fewer than 32 bits."""
    for op in module.walk():
        if not isinstance(op, Structured):
            continue
        structure = op.structure()
        body = structure.body
        merged = body.combiner if body.along is None else body.along.name
        if merged != "sum" or structure.own_operands != 1:
            continue
        for value in (op.operands[0], *op.results):
            dtype = numpy_dtype(nn.element_of(value))
            if is_floating(dtype) and dtype.itemsize < WIDE:
                yield op, nn.element_of(value)
                break
