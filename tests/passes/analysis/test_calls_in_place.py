"""Which copies around calls are left out, seen in the copies that are left at tile."""

import numpy as np
import pytest
from some_tensors import counting, module_of

from abele.backends.evaluate.tile import run_tile
from abele.dialects.levels import NN, TILE
from abele.dialects.steps import Copy
from abele.ir.pass_manager import parse_pipeline
from abele.ir.upstream import ModuleOp
from abele.passes.pipelines import PASSES, pipeline

from ...strategies import context

V = "tensor<4xf32>"

ADD = f"""
func.func @add(%x: {V}, %sum: {V}) -> {V} {{
  %0 = nn.add %sum, %x : ({V}, {V}) -> {V}
  func.return %0 : {V}
}}"""


def lowered(main: str) -> ModuleOp:
    made = context()
    module = module_of(f"{ADD}\nfunc.func @main(%a: {V}, %b: {V}) -> ({V}, {V}) {{ {main} }}", made)
    for each in parse_pipeline(pipeline(NN, TILE, "tiny:1"), PASSES):
        each.apply(made, module)
    return module


def copies(module: ModuleOp) -> list[str]:
    """The copies into and out of the variables of @add, as "from -> to"."""
    pairs = ((op.sources[0], op.destination) for op in module.walk() if isinstance(op, Copy))
    return [f"{a} -> {b}" for a, b in pairs if "add" in f"{a} {b}"]


def call(result: str, x: str, total: str) -> str:
    return f"{result} = func.call @add({x}, {total}) : ({V}, {V}) -> {V} "


LOOP = f"""%s = control.repeat 3 (%b) : ({V}) -> ({V}) {{
    ^bb0(%t: {V}):
      {{body}}
      control.yield %n : {V}
    }}"""


def test_a_sum_that_a_loop_hands_from_call_to_call_stays_in_one_variable():
    loop = LOOP.replace("{body}", call("%n", "%a", "%t"))
    module = lowered(f"{loop} func.return %s, %a : {V}, {V}")
    # Only the first sum is brought; what every call adds lives in the parameter.
    assert copies(module) == ["arg1 -> add.arg1"]


CASES = {
    "two calls one after the other": (
        call("%n", "%a", "%b") + call("%m", "%a", "%n") + f"func.return %m, %a : {V}, {V}",
        lambda a, b: (a + (a + b), a),
    ),
    "a result that is read after the next call": (
        call("%n", "%a", "%b") + call("%m", "%b", "%n") + f"func.return %n, %m : {V}, {V}",
        lambda a, b: (a + b, b + (a + b)),
    ),
    "an argument that is read after the call": (
        call("%n", "%a", "%b") + f"func.return %n, %b : {V}, {V}",
        lambda a, b: (a + b, b),
    ),
    "a loop whose sum is read after a later call": (
        LOOP.replace("{body}", call("%n", "%a", "%t"))
        + call("%m", "%b", "%b")
        + f"func.return %s, %m : {V}, {V}",
        lambda a, b: (b + a + a + a, b + b),
    ),
    "a loop that goes on with its sum": (
        LOOP.replace("{body}", call("%n", "%a", "%t"))
        + call("%m", "%b", "%s")
        + f"func.return %m, %a : {V}, {V}",
        lambda a, b: (b + (b + a + a + a), a),
    ),
    "two calls in a loop": (
        LOOP.replace("{body}", call("%k", "%a", "%t") + call("%n", "%k", "%b"))
        + f"func.return %s, %b : {V}, {V}",
        lambda a, b: (b + (a + (b + (a + (b + (a + b))))), b),
    ),
    "an old sum that is read behind the call": (
        f"""%s, %u = control.repeat 2 (%b, %b) : ({V}, {V}) -> ({V}, {V}) {{
        ^bb0(%t: {V}, %p: {V}):
          {call("%n", "%a", "%t")}
          %q = nn.sub %n, %t : ({V}, {V}) -> {V}
          control.yield %n, %q : {V}, {V}
        }}
        func.return %s, %u : {V}, {V}""",
        lambda a, b: (b + a + a, a),
    ),
    "a sum that is read again behind the call": (
        LOOP.replace("{body}", call("%k", "%a", "%t") + f"%n = nn.mul %k, %t : ({V}, {V}) -> {V}")
        + f"func.return %s, %a : {V}, {V}",
        lambda a, b: (
            (lambda f: f(f(f(b))))(lambda t: (t + a) * t),
            a,
        ),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_still_needed_is_copied(case: str):
    main, meant = CASES[case]
    a, b = counting((4,)), counting((4,)) + 2
    run = run_tile(lowered(main), {"arg0": a, "arg1": b})
    for found, wanted in zip(run.outputs.values(), meant(a, b), strict=True):
        assert np.array_equal(found, wanted)
