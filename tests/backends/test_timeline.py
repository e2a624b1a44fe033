"""Timelines against the price of the program, which counts the same executions."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings

from abele.backends.prices.price import price, step_prices, totals
from abele.backends.target import Target, resolve_target
from abele.backends.timeline import Execution, Skipped, timeline
from abele.ir.upstream import ModuleOp

from ..strategies import Program, planned_programs
from .exchange_text import exchange_module, lowered, relu, step

TINY = resolve_target("tiny")
MANY = 1_000_000


def run_of(module: ModuleOp, most: int = MANY, target: Target = TINY) -> list[Execution | Skipped]:
    advances = {each.step: each.advance for each in step_prices(module, target)}
    return list(timeline(module, advances, target, most))


def ends(run: list[Execution | Skipped]) -> list[int]:
    return [each.end for each in run]


FUNCTION = f"func.func @f() {{ {step('f', relu('w', 'a'))} func.return }}"
NESTED = f"""control.repeat 5 () : () -> () {{ {step("outer", relu("w", "b"))}
    control.repeat 3 () : () -> () {{ {step("inner", relu("w", "c"))} control.yield }}
    func.call @f() : () -> () control.yield }}
  func.call @f() : () -> ()
  %p = exchange.read @p : i1
  control.if %p : i1 {{ {step("cheap", relu("w", "b"))} control.yield }}
    else {{ {step("dear", relu("w", "b"), relu("w", "c"))} control.yield }}
  control.while () : () -> () {{ {step("test", relu("w", "d"))}
      %q = exchange.read @p : i1 control.condition %q : i1 }}
    do {{ {step("body", relu("w", "e"))} control.yield }}"""


def test_executions_follow_each_other_in_the_order_of_a_run():
    module = exchange_module(NESTED, functions=FUNCTION)
    run = run_of(module)
    names = [each.step.sym_name.data for each in run if isinstance(each, Execution)]
    iteration = ["outer", "inner", "inner", "inner", "f"]
    assert names == [*iteration * 5, "f", "dear", "test", "body"]
    assert [each.start for each in run] == [0, *ends(run)[:-1]]
    assert ends(run)[-1] == totals(price(module, TINY)).cycles
    assert run[8].iterations == (1, 2)


@pytest.mark.parametrize("most", [0, 1, 5, 6, 11, 26])
def test_skipped_iterations_take_as_long_as_they_would(most: int):
    module = exchange_module(NESTED, functions=FUNCTION)
    run = run_of(module, most)
    assert [each.start for each in run] == [0, *ends(run)[:-1]]
    assert ends(run)[-1] == totals(price(module, TINY)).cycles
    # Each loop has its first iteration, and what is outside of loops is always there.
    names = {each.step.sym_name.data for each in run if isinstance(each, Execution)}
    assert names == {"outer", "inner", "f", "dear", "test", "body"}
    # Outside the loops there are four; a first iteration of both has three.
    assert sum(isinstance(each, Execution) for each in run) <= max(most, 3) + 4


@settings(max_examples=20)
@given(planned_programs())
def test_every_execution_of_a_price_is_in_the_timeline(program: Program):
    module = lowered(program)
    run = run_of(module)
    counted = Counter(each.step.sym_name.data for each in run if isinstance(each, Execution))
    expected = Counter[str]()
    for each in price(module, TINY):
        expected[each.name] += each.times
    assert counted == +expected
