"""What a load gives, whatever was stored before it: the same at every level."""

from itertools import pairwise

import numpy as np
import pytest

from abele.backends.evaluate.partition import run_partition
from abele.backends.evaluate.tile import run_tile
from abele.backends.machine import Machine
from abele.backends.reference import run_reference
from abele.backends.target import resolve_target
from abele.dialects.levels import EXCHANGE, LEVELS, PARTITION
from abele.ir.pass_manager import parse_pipeline
from abele.ir.text import parse_module
from abele.passes.pipelines import PASSES, pipeline

from .strategies import context

REMOTE_HOME = ' {home = "remote"}'

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
    "the old value, after it was overwritten": f"""
      %l = nn.load @s : tensor<4xf32>
      %0 = nn.add %l, %x : {ADD}
      nn.store %0, @s : tensor<4xf32>
      %1 = nn.mul %l, %0 : {ADD}
      func.return %1 : tensor<4xf32>
    """,
    "the old value, between the new one and its store": f"""
      %l = nn.load @s : tensor<4xf32>
      %0 = nn.add %l, %x : {ADD}
      %1 = nn.sub %l, %0 : {ADD}
      nn.store %0, @s : tensor<4xf32>
      func.return %1 : tensor<4xf32>
    """,
    "each element from another": f"""
      %l = nn.load @s : tensor<4xf32>
      %r = nn.slice %l from [3] step [-1] size [4] : (tensor<4xf32>) -> tensor<4xf32>
      %0 = nn.sub %r, %l : {ADD}
      nn.store %0, @s : tensor<4xf32>
      func.return %0 : tensor<4xf32>
    """,
    "two that change places": """
      %l = nn.load @s : tensor<4xf32>
      %m = nn.load @t : tensor<4xf32>
      nn.store %m, @s : tensor<4xf32>
      nn.store %l, @t : tensor<4xf32>
      func.return %l : tensor<4xf32>
    """,
    "one value for two": f"""
      %l = nn.load @s : tensor<4xf32>
      %m = nn.load @t : tensor<4xf32>
      %0 = nn.add %l, %m : {ADD}
      nn.store %0, @s : tensor<4xf32>
      nn.store %0, @t : tensor<4xf32>
      func.return %m : tensor<4xf32>
    """,
    "in a branch": f"""
      %c = nn.load @s : tensor<4xf32>
      %0 = nn.greater %c, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
      %1 = nn.slice %0 from [0] step [1] size [1] : (tensor<4xi1>) -> tensor<1xi1>
      %p = nn.reshape %1 to [] : (tensor<1xi1>) -> tensor<i1>
      %2 = control.if %p : tensor<i1> -> (tensor<4xf32>) {{
        %3 = nn.add %c, %x : {ADD}
        nn.store %3, @s : tensor<4xf32>
        control.yield %3 : tensor<4xf32>
      }} else {{
        control.yield %c : tensor<4xf32>
      }}
      func.return %2 : tensor<4xf32>
    """,
    "steps of descent with momentum": f"""
      %w = nn.load @s : tensor<4xf32>
      %v = nn.load @t : tensor<4xf32>
      %g = nn.mul %w, %x : {ADD}
      %0 = nn.scale %v by 0.5 : (tensor<4xf32>) -> tensor<4xf32>
      %1 = nn.add %0, %g : {ADD}
      %2 = nn.sub %w, %1 : {ADD}
      nn.store %2, @s : tensor<4xf32>
      nn.store %1, @t : tensor<4xf32>
      func.return %g : tensor<4xf32>
    """,
}


TO = "(tensor<4xf32>) -> tensor<4xf32>"

READS = f"""
  func.func @reads(%x: tensor<4xf32>) -> tensor<4xf32> {{
    %l = nn.load @s : tensor<4xf32>
    %0 = nn.mul %l, %x : {ADD}
    func.return %0 : tensor<4xf32>
  }}
"""

UPDATES = f"""
  func.func @updates(%x: tensor<4xf32>) -> tensor<4xf32> {{
    %l = nn.load @s : tensor<4xf32>
    %0 = nn.add %l, %x : {ADD}
    nn.store %0, @s : tensor<4xf32>
    func.return %0 : tensor<4xf32>
  }}
"""

CALLS = {
    "read, then updated": f"""
      %0 = func.call @reads(%x) : {TO}
      %1 = func.call @updates(%0) : {TO}
      func.return %1 : tensor<4xf32>
    """,
    "updated, then read": f"""
      %0 = func.call @updates(%x) : {TO}
      %1 = func.call @reads(%0) : {TO}
      func.return %1 : tensor<4xf32>
    """,
    "updated twice": f"""
      %0 = func.call @updates(%x) : {TO}
      %1 = func.call @updates(%0) : {TO}
      %2 = func.call @reads(%1) : {TO}
      func.return %2 : tensor<4xf32>
    """,
    "updated in a loop": f"""
      %0 = func.call @reads(%x) : {TO}
      %r = control.repeat 3 (%0) : (tensor<4xf32>) -> tensor<4xf32> {{
      ^bb0(%y: tensor<4xf32>):
        %1 = func.call @updates(%y) : {TO}
        control.yield %1 : tensor<4xf32>
      }}
      func.return %r : tensor<4xf32>
    """,
}

PRODUCT = """
  %l = nn.load @s : tensor<4xf32>
  %0 = nn.matmul %l, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  nn.store %0, @s : tensor<4xf32>
  func.return %0 : tensor<4xf32>
""".replace("tensor<4xf32>", "tensor<2x2xf32>")


@pytest.mark.parametrize("remote", ["", "s", "st"])
@pytest.mark.parametrize("tiles", [1, 2])
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_levels_agree_on_state(name: str, tiles: int, remote: str):
    check_levels(PROGRAMS[name], (4,), tiles, remote)


@pytest.mark.parametrize("tiles", [1, 2])
def test_all_levels_agree_on_a_state_that_is_multiplied(tiles: int):
    check_levels(PRODUCT, (2, 2), tiles)
    check_levels(PRODUCT, (2, 2), tiles, "s")


@pytest.mark.parametrize("remote", ["", "s"])
@pytest.mark.parametrize("name", CALLS)
def test_all_levels_agree_on_state_that_functions_use(name: str, remote: str):
    check_levels(CALLS[name], (4,), 2, remote, READS + UPDATES)


def check_levels(
    body: str, shape: tuple[int, ...], tiles: int, remote: str = "", functions: str = ""
) -> None:
    """Run @main(%x) with states @s and @t at every level, the last one strictly, and compare.

    Args:
        remote: the states whose home is remote memory.
        functions: that the body calls.
    """
    made, target = context(), f"tiny:{tiles}"
    ramp = np.arange(4, dtype=np.float32).reshape(shape)
    type_ = f"tensor<{'x'.join(map(str, shape))}xf32>"
    digests = [made.blobs.add(ramp + 3 * i).digest for i in range(2)]
    module = parse_module(
        "".join(
            f'nn.state @{name} : {type_} = <"{digest}">{REMOTE_HOME * (name in remote)}\n'
            for name, digest in zip("st", digests, strict=True)
        )
        + f"{functions} func.func @main(%x: {type_}) -> {type_} {{ {body} }}",
        made,
    )
    inputs = {"arg0": ramp + 5}
    expected = run_reference(module, inputs)
    found = []
    for above, level in pairwise(LEVELS):
        steps = pipeline(above, level, target)
        for each in parse_pipeline(steps, PASSES):
            each.apply(made, module)
        if level == EXCHANGE:
            machine = Machine(module, resolve_target(target), strict=True)
            machine.load()
            states = [v for v, op in machine.variables.items() if op.state is not None]
            used = {name for name in remote if f"@{name} :" in body + functions}
            assert machine.remote_states.keys() == used
            states += machine.remote_states
            found.append((machine.run(inputs)["out0"], {v: machine.read(v) for v in states}))
        else:
            run = (run_partition if level == PARTITION else run_tile)(module, inputs)
            found.append((run.outputs["out0"], run.state))
    for output, states in found:
        assert np.array_equal(output.ravel(), expected.outputs["out0"].ravel())
        for each, state in states.items():
            assert np.array_equal(state.ravel(), expected.state[each].ravel()), each
