"""A strict machine checks when messages leave, and finds mistakes that are made on purpose."""

from typing import Any

import numpy as np
import pytest

from abele.backends.faults import MachineFault
from abele.backends.machine import Machine
from abele.backends.target import resolve_target
from abele.backends.timetable import strict
from abele.backends.timetable.faults import ShiftMessage, SwapMessages, WrongMux
from abele.ir.text import parse_module
from abele.ir.upstream import ModuleOp

from ...strategies import context

TARGET = resolve_target("tiny:4")

PROGRAM = """
exchange.variable @x at 0 : tensor<8x8xf32> layout <[8 by 4, 8] (d0, d1) of [8, 8]>
exchange.variable @y at 64 : tensor<8x8xf32> layout <[8 by 4, 8] (d1, d0) of [8, 8]>
func.func @main() {
  exchange.superstep @in {
    exchange.sync "external"
    exchange.input "x" -> @x : tensor<8x8xf32>
  }
  exchange.superstep @turn {
    exchange.sync "internal"
    exchange.move [@x] -> @y
        order <((d0 - s0) mod 4) of [4, 1] from [4, 1]> chunk 2
  }
  func.return
}
"""


def turned() -> ModuleOp:
    return parse_module(PROGRAM, context())


def test_a_timetable_that_follows_from_an_order_can_run():
    module = turned()
    machine = Machine(module, TARGET, strict=True)
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    machine.run({"x": x})
    assert np.array_equal(machine.read("y"), x)


def test_an_exchange_of_too_many_messages_is_named(monkeypatch: pytest.MonkeyPatch):
    assert Machine(turned(), TARGET, strict=True).unchecked == ()
    monkeypatch.setattr(strict, "MOST_CHECKED", 11)
    assert Machine(turned(), TARGET, strict=True).unchecked == ("turn",)
    with pytest.raises(MachineFault):
        Machine(turned(), TARGET, strict=True, faults=[ShiftMessage("turn", 0)])


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (ShiftMessage("turn", 0), "message 0 of @x -> @y, from tile 0"),
        (ShiftMessage("turn", 5, -1), "message 5 of @x -> @y, from tile"),
        (SwapMessages("turn", 0, 1), "from tile 0"),
        (WrongMux("turn", 0, 5), "message 0 of @x -> @y, from tile 0: tile . listens to another"),
    ],
)
def test_each_mistake_is_found_and_named(fault: Any, message: str):
    with pytest.raises(MachineFault, match=message) as found:
        Machine(turned(), TARGET, strict=True, faults=[fault])
    assert found.value.superstep == "turn"


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (ShiftMessage("turns", 0), "no superstep @turns"),
        (WrongMux("turn", 0, 999), r"WrongMux\(.*message 999; the superstep has "),
    ],
)
def test_a_mistake_that_cannot_be_made_is_refused(fault: Any, message: str):
    with pytest.raises(ValueError, match=message):
        Machine(turned(), TARGET, strict=True, faults=[fault])
