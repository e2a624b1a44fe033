from random import Random

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from abele.backends.machine import Machine
from abele.backends.target import resolve_target
from abele.dialects.levels import EXCHANGE, TILE
from abele.dialects.steps import Copy
from abele.ir.text import parse_module, print_module
from abele.ir.verify import verify
from abele.passes.convert_tile_to_exchange import ConvertTileToExchange
from abele.tools.testing.generators.messages import decide_messages

from ....strategies import context

PROGRAM = """
builtin.module attributes {abele.target = "tiny:8"} {
  tile.variable @x : tensor<4x6xf32> layout <[4 by 2, 6 by 3] (d0, d1) of [4, 6]>
      {address = 0 : i64}
  tile.variable @pairs : tensor<4x6xf32> layout <[6 by 3, 2 by 2, 4] (d2, d0) of [4, 6]>
      {address = 64 : i64}
  tile.variable @y : tensor<4x6xf32> layout <[4 by 4, 6 by 2] (d0, d1) of [4, 6]>
      {address = 128 : i64}
  func.func @main() {
    tile.superstep @in { tile.sync "external" tile.input "x" -> @x : tensor<4x6xf32> }
    tile.superstep @one { tile.sync "internal" tile.copy [@x] -> @pairs }
    tile.superstep @two { tile.sync "internal" tile.copy [@x] -> @y }
    tile.superstep @out { tile.sync "external" tile.output @y -> "y" : tensor<4x6xf32> }
    func.return
  }
}
"""


@given(st.integers(0, 1 << 30))
def test_any_order_chunk_and_width_is_legal_and_leaves_the_same_bytes(seed: int):
    made = context()
    module = parse_module(PROGRAM, made)
    decide_messages(module, Random(seed))
    verify(module, TILE)
    moves = [dict(op.properties) for op in module.walk() if isinstance(op, Copy)]
    ConvertTileToExchange().apply(made, module)
    verify(module, EXCHANGE)
    assert moves == [op.properties for op in module.walk() if isinstance(op, Copy)]
    assert print_module(parse_module(print_module(module), made)) == print_module(module)
    machine = Machine(module, resolve_target("tiny:8"), strict=True)
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    assert np.array_equal(machine.run({"x": x})["y"], x)


def test_each_kind_of_decision_is_drawn():
    module = parse_module(PROGRAM, context())
    found = set[str]()
    for seed in range(20):
        decide_messages(module, Random(seed))
        for op in module.walk():
            if isinstance(op, Copy):
                found |= {name for name in ("order", "chunk", "width") if name in op.properties}
    assert found == {"order", "chunk", "width"}
