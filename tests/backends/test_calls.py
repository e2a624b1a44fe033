"""Programs that call functions exponentially often, against the same analyses of all calls."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from abele.backends.calls import FirstAndLastCalls
from abele.backends.clocks.section import MOST_TIMES
from abele.backends.counts import counts
from abele.backends.faults import IterationLimit
from abele.backends.graph.contents import Content
from abele.backends.graph.flow import Flow, flow_of
from abele.backends.memory import memory_report
from abele.backends.prices.price import price, step_prices
from abele.backends.target import resolve_target
from abele.backends.timeline import timeline
from abele.dialects.tile import VariableOp
from abele.ir.errors import InputError
from abele.ir.support.limits import LISTED_SUPERSTEPS, NESTED_LOOPS
from abele.ir.upstream import ModuleOp
from abele.passes.analysis.lifetimes import lifetimes
from abele.tools import compile_model
from abele.tools.driver.executable import Executable
from abele.tools.driver.request import Request
from abele.tools.views.planning.plan import plan_model

from ..call_graphs import doubling, random_calls
from .exchange_text import exchange_module, relu, step

TINY = resolve_target("tiny:4")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("calls")


def listed(module: ModuleOp) -> int:
    """The length of a timeline of at most 1,000 executions."""
    advances = {each.step: each.advance for each in step_prices(module, TINY)}
    return len(list(timeline(module, advances, TINY, 1000)))


def compiled(folder: Path, text: str) -> Executable:
    path = folder / "calls.mlir"
    path.write_text(text)
    return compile_model(path, "tiny:4")


def test_doubling_calls_are_compiled_and_reported_in_linear_time(folder: Path):
    exe = compiled(folder, doubling(30))
    module = exe.module_at("exchange")
    prices = price(module, TINY)
    assert max(each.times for each in prices) == 2**30
    assert exe.profile["max_tile_bytes"] > 0
    assert len(memory_report(module, TINY).steps) < 10 * len(prices)
    assert counts(module).vertices == 4
    assert len(flow_of(module).calls) < 100
    assert listed(module) < 2000
    assert len(plan_model(Request(folder / "calls.mlir", TINY, passes="nn")).plan.operators) == 1
    with pytest.raises(
        IterationLimit, match=r"func.call at .*: takes .* iterations and calls; at most"
    ):
        exe.run({"arg0": np.zeros(4, np.float32)})


def relations(phases: np.ndarray) -> np.ndarray:
    """Which variables begin before, with or after others end."""
    return np.sign(phases[:, None, 0] - phases[None, :, 1])


@settings(max_examples=8)
@given(st.integers(0, 2**20))
@example(3)
def test_first_and_last_calls_tell_which_variables_live_together(folder: Path, seed: int):
    exe = compiled(folder, random_calls(seed))
    module = exe.module_at("tile")
    variables = [op for op in module.ops if isinstance(op, VariableOp)]
    found = lifetimes(module, variables)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FirstAndLastCalls, "enter", lambda self, call: True)
        every = lifetimes(module, variables)
    assert (relations(found.phases) == relations(every.phases)).all()
    assert found.inherits == every.inherits


@settings(max_examples=5)
@given(st.integers(0, 2**20))
def test_a_brief_memory_report_is_an_upper_bound(folder: Path, seed: int):
    module = compiled(folder, random_calls(seed)).module_at("exchange")
    full = memory_report(module, TINY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LISTED_SUPERSTEPS.variable, "1")
        brief = memory_report(module, TINY)
    assert (brief.transient_bytes >= full.transient_bytes).all()
    assert (brief.tile_bytes == full.tile_bytes).all()
    assert {s.name for s in brief.steps} == {s.name for s in full.steps}


@settings(max_examples=5)
@given(st.integers(0, 2**20))
def test_the_flow_through_calls_that_are_remembered_is_the_same(folder: Path, seed: int):
    module = compiled(folder, random_calls(seed)).module_at("exchange")

    class Forgetful(dict):
        def __contains__(self, key: object) -> bool:
            return False

    found = flow_of(module)
    every = Flow(found.variables, found.functions, calls=Forgetful())
    every.run()

    def outlined(content: Content) -> tuple:
        """What a content is made of, in depth."""
        own = getattr(content, "producer", None), getattr(content, "spaces", ())
        carried = bool(content.extent.loops)
        return (*own, carried, tuple(map(outlined, content.parts)))

    def reads(flow: Flow) -> dict:
        """Without the numbers of loops, which count all passes."""
        return {key: {outlined(content) for content in held} for key, held in flow.reads.items()}

    assert reads(found) == reads(every)


def test_counts_of_executions_are_saturated():
    inner = step("one", relu("w", "a"))
    for _ in range(4):
        inner = f"control.repeat {2**60} () : () -> () {{ {inner} control.yield }}"
    module = exchange_module(inner)
    assert [each.times for each in price(module, TINY)] == [MOST_TIMES]
    assert listed(module) < 2000


def test_iterations_of_an_empty_loop_cost_nothing_in_a_timeline(folder: Path):
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = control.repeat 1152921504606846976 (%x) : (tensor<4xf32>) -> (tensor<4xf32>) {
      ^bb0(%y: tensor<4xf32>):
        control.yield %y : tensor<4xf32>
      }
      func.return %0 : tensor<4xf32>
    }"""
    exe = compiled(folder, text)
    module = exe.module_at("exchange")
    assert listed(module) < 10
    with pytest.raises(
        IterationLimit, match="1,152,921,504,606,846,976 iterations; at most 200,000"
    ):
        exe.run({"arg0": np.zeros(4, np.float32)})


def test_loops_are_nested_up_to_the_limit():
    def nested(depth: int) -> str:
        inner = step("one", relu("w", "a"))
        for _ in range(depth):
            inner = f"control.repeat 2 () : () -> () {{ {inner} control.yield }}"
        return inner

    assert flow_of(exchange_module(nested(NESTED_LOOPS.most))).depth == 0
    with pytest.raises(InputError, match="control.repeat at .*: nested too deeply; at most 8"):
        flow_of(exchange_module(nested(NESTED_LOOPS.most + 1)))
