"""A strict machine finds the mistakes that are planted in timetables."""

import pytest

from abele.backends import machine
from abele.backends.faults import MachineFault
from abele.backends.machine import Machine
from abele.backends.target import resolve_target
from abele.ir.text import parse_module
from abele.ir.upstream import ModuleOp
from abele.passes.order_exchanges import OrderExchanges
from abele.tools.testing.mutation.compare import Case
from abele.tools.testing.mutation.timetable_classes import TIMETABLE_CLASSES, timetable_mutants

from ....strategies import context

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
    exchange.move [@x] -> @y chunk 2
  }
  func.return
}
"""
TARGET = resolve_target("tiny:4")


def program() -> ModuleOp:
    return parse_module(PROGRAM, context())


CASE = Case(context(), program(), program(), "")
MUTANTS = timetable_mutants(OrderExchanges("tiny:4"), [CASE])


def test_every_class_breaks_programs_of_the_exchange_level_and_no_others():
    assert {each.kind for each in MUTANTS} == {each.name for each in TIMETABLE_CLASSES}
    assert not any(each.is_in_output for each in MUTANTS)
    nothing = parse_module("func.func @main() { func.return }", context())
    assert (
        timetable_mutants(OrderExchanges("tiny:4"), [Case(context(), nothing, nothing, "")]) == []
    )


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_strict_machine_finds_each_mistake_and_no_other_program_has_it(
    mutant, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(machine, "check_timetables", machine.check_timetables)
    wrong, right = program(), program()
    mutant.make().apply(context(), wrong)
    Machine(right, TARGET, strict=True)
    with pytest.raises(MachineFault, match="message \\d+ of @x -> @y"):
        Machine(wrong, TARGET, strict=True)
    Machine(wrong, TARGET)
