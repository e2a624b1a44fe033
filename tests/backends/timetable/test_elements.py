"""Exchanges in which tiles read and write one memory element take longer, and are named."""

from dataclasses import replace

from abele.backends.elements import Elements
from abele.backends.target import resolve_target
from abele.backends.timetable.elements import (
    ElementConflict,
    busiest_element,
    element_conflicts,
    tiles_in_conflict,
)
from abele.backends.timetable.moves import moves_of
from abele.backends.timetable.timetable import timetable
from abele.dialects.exchange import SuperstepOp, VariableOp
from abele.ir.text import parse_module

from ...strategies import context

TARGET = resolve_target("tiny:4,memory.element_bytes=64")

PROGRAM = """
exchange.variable @x at 0 : tensor<8x8xf32> layout <[8 by 4, 8] (d0, d1) of [8, 8]>
exchange.variable @y at 64 : tensor<8x8xf32> layout <[8 by 4, 8] (d1, d0) of [8, 8]>
func.func @main() {
  exchange.superstep @turn {
    exchange.sync "internal"
    exchange.move [@x] -> @y
  }
  func.return
}
"""


def conflicts(target: str, text: str = PROGRAM) -> list[ElementConflict]:
    module = parse_module(text, context())
    steps = [op for op in module.walk() if isinstance(op, SuperstepOp)]
    variables = {op.symbol: op for op in module.walk() if isinstance(op, VariableOp)}
    return element_conflicts(steps, variables, resolve_target(target))


def test_blocks_in_elements_of_their_own_do_not_meet():
    assert conflicts("tiny:4,memory.element_bytes=64") == []
    assert conflicts("tiny:4") == []


def test_blocks_in_one_element_meet_on_every_tile():
    (found,) = conflicts("tiny:4,memory.element_bytes=128")
    assert (found.step, found.tiles) == ("turn", 4)


def test_the_busiest_element_is_read_and_written_one_after_the_other():
    module = parse_module(PROGRAM, context())
    variables = {op.symbol: op for op in module.walk() if isinstance(op, VariableOp)}
    (step,) = (op for op in module.walk() if isinstance(op, SuperstepOp))
    moves = moves_of(step, variables)
    table = timetable(moves, TARGET.exchange, TARGET.tiles)
    elements = Elements.of(TARGET)
    assert elements is not None
    assert busiest_element(table, elements) == 0
    wide = replace(elements, size=128)
    # Each tile sends 3 pieces of 4 words, and receives as many.
    assert tiles_in_conflict(table, wide).tolist() == [0, 1, 2, 3]
    assert busiest_element(table, wide) == 2 * 3 * 4
