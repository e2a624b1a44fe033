"""Iterations and calls are counted as a run takes them, and refused before they take long."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.func import FuncOp

from abele.backends.evaluate.control import Walker
from abele.backends.faults import IterationLimit
from abele.backends.iterations import Iterations
from abele.ir.errors import InputError
from abele.ir.support.limits import ITERATIONS, NESTED_CALLS
from abele.ir.text import parse_module
from abele.ir.upstream import ModuleOp

from ..call_graphs import call, doubling, function, random_calls
from ..strategies import context


def walk(module: ModuleOp, most: int | None = None) -> Walker[int]:
    walker: Walker[int] = Walker(module, lambda op, _: [0] * len(op.results), bool, most)
    walker.call("main", [0])
    return walker


@settings(max_examples=40)
@given(st.integers(0, 2**20))
def test_the_least_iterations_are_those_of_a_program_without_conditions(seed: int):
    module = parse_module(random_calls(seed), context())
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
    least = Iterations(functions).least(functions["main"].body.block)
    assert walk(module).iterations.left == ITERATIONS.most - least
    walk(module, max(least, 1))
    if least > 1:
        with pytest.raises(IterationLimit, match=f"at most {least - 1} iterations are allowed$"):
            walk(module, least - 1)


def test_a_run_of_exponentially_many_calls_is_refused_at_once():
    with pytest.raises(IterationLimit, match=r"at most 200,000 iterations .*ABELE_MOST_TURNS"):
        walk(parse_module(doubling(60), context()))


def test_the_environment_changes_the_limit(monkeypatch: pytest.MonkeyPatch):
    module = parse_module(doubling(6), context())
    walk(module)
    monkeypatch.setenv(ITERATIONS.variable, "100")
    with pytest.raises(
        IterationLimit, match="takes 127 iterations and calls; at most 100 iterations"
    ):
        walk(module)


def test_calls_are_nested_up_to_the_limit():
    def chain(length: int) -> ModuleOp:
        made = [function(f"f{i}", [call("%0", f"f{i + 1}", "%x")], "%0") for i in range(length - 1)]
        made.append(function(f"f{length - 1}", [], "%x"))
        made.append(function("main", [call("%0", "f0", "%x")], "%0"))
        return parse_module("".join(made), context())

    walk(chain(NESTED_CALLS.most))
    with pytest.raises(InputError, match="nested too deeply; at most 64 nested calls"):
        walk(chain(NESTED_CALLS.most + 1))


def test_an_iteration_of_an_empty_loop_calls_one_function(monkeypatch: pytest.MonkeyPatch):
    module = parse_module(
        """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
          %0 = control.repeat 1000 (%x) : (tensor<4xf32>) -> (tensor<4xf32>) {
          ^bb0(%y: tensor<4xf32>):
            control.yield %y : tensor<4xf32>
          }
          func.return %0 : tensor<4xf32>
        }""",
        context(),
    )
    entered = 0

    def count(frame, event, argument):
        nonlocal entered
        entered += event == "call" and "/xdsl/" not in frame.f_code.co_filename
        return None

    import sys

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        walk(module)
    finally:
        sys.setprofile(before)
    assert entered < 4 * 1000
