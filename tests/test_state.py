"""What a load gives, whatever was stored before it: the same at every level."""

import numpy as np
import pytest

from abele.backends.evaluate.partition import run_partition
from abele.backends.evaluate.tile import run_tile
from abele.backends.machine import Machine
from abele.backends.reference import run_reference
from abele.backends.target import resolve_target
from abele.ir.pass_manager import parse_pipeline
from abele.ir.text import parse_module
from abele.passes.pipelines import PASSES, pipeline

from .strategies import context

ADD = "(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"

PROGRAMS = {
    "load after store": """
      nn.store %x, @s : tensor<4xf32>
      %l = nn.load @s : tensor<4xf32>
      func.return %l : tensor<4xf32>
    """,
    "both in a loop": f"""
      %r = control.repeat 3 (%x) : (tensor<4xf32>) -> tensor<4xf32> {{
      ^bb0(%y: tensor<4xf32>):
        %l = nn.load @s : tensor<4xf32>
        %0 = nn.add %l, %y : {ADD}
        nn.store %0, @s : tensor<4xf32>
        control.yield %0 : tensor<4xf32>
      }}
      func.return %r : tensor<4xf32>
    """,
    "a counter": f"""
      %l = nn.load @s : tensor<4xf32>
      %0 = nn.add %l, %x : {ADD}
      nn.store %0, @s : tensor<4xf32>
      func.return %0 : tensor<4xf32>
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_levels_agree_on_state(name: str):
    made = context()
    digest = made.blobs.add(np.arange(4, dtype=np.float32)).digest
    module = parse_module(
        f'nn.state @s : tensor<4xf32> = <"{digest}">\n'
        f"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{ {PROGRAMS[name]} }}",
        made,
    )
    inputs = {"arg0": np.array([5, 6, 7, 8], np.float32)}
    expected = run_reference(module, inputs)
    found = []
    for level in ("partition", "tile", "exchange"):
        steps = pipeline("nn" if level == "partition" else PREVIOUS[level], level, "tiny:2")
        for each in parse_pipeline(steps, PASSES):
            each.apply(made, module)
        if level == "exchange":
            machine = Machine(module, resolve_target("tiny:2"), strict=True)
            machine.load()
            found.append((machine.run(inputs)["out0"], machine.read("s")))
        else:
            run = (run_partition if level == "partition" else run_tile)(module, inputs)
            found.append((run.outputs["out0"], run.state["s"]))
    for output, state in found:
        assert np.array_equal(output, expected.outputs["out0"])
        assert np.array_equal(state.ravel(), expected.state["s"])


PREVIOUS = {"tile": "partition", "exchange": "tile"}
