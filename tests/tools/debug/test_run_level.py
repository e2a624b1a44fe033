"""Programs run at whatever level they are."""

from importlib.resources import files

import numpy as np

from abele.backends.target import resolve_target
from abele.dialects.levels import EXCHANGE
from abele.ir.rules.parse import parse_rules
from abele.ir.rules.syntax import Build
from abele.ir.text import parse_module
from abele.tools.debug.run_level import _ON_BYTES, Value, run_level

from ...strategies import context


def test_operations_on_bytes_are_what_the_rules_make_of_those_of_tile():
    text = files("abele.passes").joinpath("rules/tile_to_exchange.rw").read_text()
    made: dict[str, str] = {}
    for rule in parse_rules(text).rules:
        (root,), (result,) = rule.pattern.heads, rule.results
        assert isinstance(result, Build)
        made[root] = result.head
    assert made == {root.name: kind.name for root, kind in _ON_BYTES.items()}


def test_operands_that_are_written_over_are_told_as_they_were():
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

    def watch(value: Value) -> None:
        told.extend(held.values.tolist() for held in value.operands())

    ramp = np.arange(4, dtype=np.float32)
    module = parse_module(text, context())
    done = run_level(EXCHANGE, module, resolve_target("tiny:1"), {"x": ramp}, watch)
    assert done.outputs["y"].tolist() == [0, 1, 4, 9]
    assert told == [[0, 1, 2, 3]]
