"""Addresses for variables that are live at different times."""

import numpy as np

from abele.dialects import tile
from abele.ir.text import parse_module
from abele.passes.analysis.lifetimes import Lifetimes
from abele.passes.analysis.packing import pack

from ...strategies import context


def some_variables(*sizes: int) -> list[tile.VariableOp]:
    """Variables of so many bytes on one tile."""
    text = "\n".join(
        f"tile.variable @v{i} : tensor<{n // 4}xf32> layout <[{n // 4}] (d0) of [{n // 4}]>"
        for i, n in enumerate(sizes)
    )
    module = parse_module(text, context())
    return [v for v in module.walk() if isinstance(v, tile.VariableOp)]


def test_another_order_is_tried_where_the_largest_first_leaves_gaps():
    variables = some_variables(24, 16, 24, 24)
    phases = np.array([[4, 6], [0, 3], [3, 5], [1, 1]])
    lives = Lifetimes(phases, (frozenset(),) * 4)
    ends = [pack(variables, lives, None, room) + [24, 16, 24, 24] for room in (0, 48, 40)]
    assert [each.max() for each in ends] == [64, 48, 48]


def test_variables_on_every_other_chip_get_the_same_address():
    text = "\n".join(
        f"tile.variable @v{i} : tensor<8xf32> layout <[8 by 4 across 2] (d0) of [8] "
        f"at {first} apart 4>"
        for i, first in enumerate((0, 2, 1))
    )
    module = parse_module(text, context())
    variables = [v for v in module.walk() if isinstance(v, tile.VariableOp)]
    lives = Lifetimes(np.array([[0, 9]] * 3), (frozenset(),) * 3)
    assert pack(variables, lives).tolist() == [0, 0, 8]
