"""Operations of nn that a function builds, and the values that they give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Block, SSAValue

from abele.backends.reference import evaluate_pure
from abele.dialects import nn
from abele.dialects.dtypes import element_type
from abele.passes.stablehlo_to_nn.conversion import ToNn

Array = NDArray[Any]


def values_of(
    build: Callable[..., SSAValue | list[SSAValue]], *arrays: Array
) -> Array | list[Array]:
    """The values of what a function builds of operands of these arrays.

    Args:
        build: takes the program that is made, then the operands.
    """
    block = Block(arg_types=[nn.tensor(a.shape, element_type(a.dtype)) for a in arrays])
    new = ToNn({}, {})
    with new.into(block):
        made = build(new, *block.args)
    known: dict[SSAValue, Array] = dict(zip(block.args, map(np.asarray, arrays), strict=True))
    for op in block.ops:
        op.verify()
        known.update(
            zip(op.results, evaluate_pure(op, [known[v] for v in op.operands]), strict=True)
        )
    return known[made] if isinstance(made, SSAValue) else [known[each] for each in made]
