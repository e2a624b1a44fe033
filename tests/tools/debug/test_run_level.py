"""Programs run at whatever level they are."""

import numpy as np
import pytest

from abele.backends.target import resolve_target
from abele.dialects.levels import EXCHANGE, TILE
from abele.ir.errors import InputError
from abele.ir.text import parse_module
from abele.tools.debug.run_level import ComputedValue, _with_bytes, run_level

from ...passes.programs import TO_EXCHANGE, TO_SUPERSTEPS, after
from ...strategies import context


def test_variables_get_bytes_as_the_pass_gives_them():
    assert _with_bytes(after(TO_SUPERSTEPS)).is_structurally_equivalent(after(TO_EXCHANGE))


def test_a_program_whose_supersteps_conflict_is_bad_input():
    space = "space <[i = 4] (i) of [4] -> (i) of [4]> body <square> plan <split [1]>"
    vertices = f"tile.vertices {space} reads [@x] writes @y"
    text = f"""
    tile.variable @x : tensor<4xf32> layout <[4] (d0) of [4]>
    tile.variable @y : tensor<4xf32> layout <[4] (d0) of [4]>
    func.func @main() {{
      tile.input "x" -> @x : tensor<4xf32> {{superstep = 0 : i64}}
      tile.compute_set @a {{ {vertices} {vertices} }} {{superstep = 1 : i64}}
      tile.output @y -> "y" : tensor<4xf32> {{superstep = 2 : i64}}
      func.return
    }}"""
    module = parse_module(text, context())
    with pytest.raises(InputError, match="writes @y, which is in use, in one superstep"):
        run_level(TILE, module, resolve_target("tiny:1"), {"x": np.zeros(4, np.float32)})


def test_overwritten_operands_are_reported_with_their_old_values():
    space = "space <[i = 4] (i) of [4] -> (i) of [4]> body <square> plan <split [1]>"
    text = f"""
    exchange.variable @x at 0 : tensor<4xf32> layout <[4] (d0) of [4]>
    exchange.variable @y at 0 : tensor<4xf32> layout <[4] (d0) of [4]>
    func.func @main() {{
      exchange.superstep @in {{ exchange.input "x" -> @x : tensor<4xf32> }}
      exchange.superstep @go {{ exchange.compute {space} reads [@x] writes @y }}
      exchange.superstep @out {{ exchange.output @y -> "y" : tensor<4xf32> }}
      func.return
    }}"""
    told: list[list[float]] = []

    def watch(value: ComputedValue) -> None:
        told.extend(held.values.tolist() for held in value.operands())

    ramp = np.arange(4, dtype=np.float32)
    module = parse_module(text, context())
    done = run_level(EXCHANGE, module, resolve_target("tiny:1"), {"x": ramp}, watch)
    assert done.outputs["y"].tolist() == [0, 1, 4, 9]
    assert told == [[0, 1, 2, 3]]
