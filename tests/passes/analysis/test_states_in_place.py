import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from abele.dialects.levels import NN, PARTITION, TILE
from abele.dialects.steps import Copy, Vertices
from abele.ir.level import Level
from abele.ir.pass_manager import parse_pipeline
from abele.ir.text import parse_module
from abele.passes.analysis.states_in_place import loaded_first, states_in_place
from abele.passes.pipelines import PASSES, pipeline

from ...strategies import context

BINARY = "(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"

DESCENT = f"""
  %w = nn.load @s : tensor<4xf32>
  %g = nn.mul %w, %x : {BINARY}
  %0 = nn.sub %w, %g : {BINARY}
  nn.store %0, @s : tensor<4xf32>
  func.return %g : tensor<4xf32>
"""

READ_AGAIN = f"""
  %w = nn.load @s : tensor<4xf32>
  %0 = nn.sub %w, %x : {BINARY}
  %1 = nn.mul %w, %0 : {BINARY}
  nn.store %0, @s : tensor<4xf32>
  func.return %1 : tensor<4xf32>
"""

READ_AFTERWARDS = f"""
  %w = nn.load @s : tensor<4xf32>
  %0 = nn.sub %w, %x : {BINARY}
  nn.store %0, @s : tensor<4xf32>
  func.return %w : tensor<4xf32>
"""

IN_A_LOOP = f"""
  %r = control.repeat 3 (%x) : (tensor<4xf32>) -> tensor<4xf32> {{
  ^bb0(%y: tensor<4xf32>):
    %w = nn.load @s : tensor<4xf32>
    %0 = nn.add %w, %y : {BINARY}
    nn.store %0, @s : tensor<4xf32>
    control.yield %0 : tensor<4xf32>
  }}
  func.return %r : tensor<4xf32>
"""

LOOP_OF_RUNS = IN_A_LOOP.replace("repeat 3", "repeat 3 runs").replace(
    "%y: tensor<4xf32>", "%y: tensor<4xf32>, %turn: tensor<i32>"
)


def down_to(level: Level, body: str) -> ModuleOp:
    made = context()
    digest = made.blobs.add(np.ones(4, np.float32)).digest
    module = parse_module(
        f'''nn.state @s : tensor<4xf32> = <"{digest}">
        func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{ {body} }}''',
        made,
    )
    for each in parse_pipeline(pipeline(NN, level, "tiny:1"), PASSES):
        each.apply(made, module)
    return module


@pytest.mark.parametrize(
    ("body", "uncopied", "written"),
    [
        (DESCENT, {"s"}, ["s"]),
        (READ_AGAIN, {"s"}, []),
        (READ_AFTERWARDS, set(), []),
        (IN_A_LOOP, set(), []),
        (LOOP_OF_RUNS, {"s"}, ["s"]),
    ],
    ids=[
        "overwritten by its last reader",
        "read again",
        "read afterwards",
        "in a loop",
        "in a loop of runs",
    ],
)
def test_a_state_is_overwritten_once_nothing_reads_it(
    body: str, uncopied: set[str], written: list[str]
):
    module = down_to(PARTITION, body)
    found = states_in_place(module, "main")
    assert found.uncopied == uncopied
    assert list(found.written.values()) == written


def test_a_step_of_gradient_descent_copies_no_weights():
    module = down_to(TILE, DESCENT)
    (update,) = [op for op in module.walk() if isinstance(op, Vertices)][-1:]
    assert update.destination == "s"
    assert not any(isinstance(op, Copy) for op in module.walk())


TYPE = "!partition.tensor<4xf32, [4 by 2] (d0) of [4]>"
LOADS = f"%l = partition.load @s : {TYPE}"


def functions(*calls: str) -> str:
    """A program whose functions load a state, and load and store it."""
    ops = "\n".join(
        f"%{i} = func.call @{name}(%x) : ({TYPE}) -> {TYPE}" for i, name in enumerate(calls)
    )
    return f"""
    partition.state @s : tensor <4xf32, [4 by 2] (d0) of [4]> = blob <"BLOB">
    func.func @reads(%x: {TYPE}) -> {TYPE} {{ {LOADS} func.return %l : {TYPE} }}
    func.func @updates(%x: {TYPE}) -> {TYPE} {{
      {LOADS} partition.store %x -> @s : {TYPE} func.return %l : {TYPE}
    }}
    func.func @main(%x: {TYPE}) -> {TYPE} {{ {ops} func.return %x : {TYPE} }}
    """


@pytest.mark.parametrize(
    ("calls", "first"),
    [
        (("reads", "updates"), True),
        (("reads", "reads", "updates"), True),
        (("updates", "reads"), False),
        (("reads", "updates", "reads"), False),
        (("updates", "updates"), False),
    ],
)
def test_loads_in_functions_come_first_if_their_calls_do(calls: tuple[str, ...], first: bool):
    made = context()
    digest = made.blobs.add(np.zeros(4, np.float32)).digest
    module = parse_module(functions(*calls).replace("BLOB", digest), made)
    assert ("s" in loaded_first(module, "main")) == first
