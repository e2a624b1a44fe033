"""Variables that only operations read are close together, and none overlaps one still read."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from xdsl.dialects.builtin import ModuleOp

from abele.backends.evaluate.binder import Binder
from abele.backends.host.fast import FastBinder
from abele.backends.host.fusion import FusedBinder
from abele.backends.machine import Machine
from abele.backends.target import resolve_target
from abele.dialects.steps import Copy, Superstep, Vertices

from ...strategies import Program, planned_programs
from ..exchange_text import exchange_module, lowered, relu, step, variable

pytest.importorskip("numba")

TINY = resolve_target("tiny:4")


def machine(module: ModuleOp, binder: type[Binder] = FusedBinder) -> Machine:
    return Machine(module, TINY, binder=binder)


def is_near(machine: Machine, name: str) -> bool:
    """Whether a variable is in the arena, not on its tiles."""
    return not np.shares_memory(machine.blocks[name].placed.memory, machine.memory)


def block_bytes(machine: Machine, name: str) -> np.ndarray:
    """The bytes of a variable's blocks, as far as they are rows of their own."""
    memory = machine.blocks[name].placed.memory
    return memory[machine.blocks[name].layout.first_tile :]


def share(machine: Machine, one: str, other: str) -> bool:
    """Whether some bytes are of both variables."""
    return np.may_share_memory(block_bytes(machine, one), block_bytes(machine, other))


def copied(*names: str) -> str:
    """Supersteps that hand a value on, from the first variable to the last."""
    return "".join(step(f"to_{b}", move(a, b)) for a, b in pairwise(names))


def move(source: str, target: str) -> str:
    return f"exchange.move [@{source}] -> @{target}"


INPUT = step("read", 'exchange.input "x" -> @a : tensor<24xf32>', zone="external")
OUTPUT = step("write", 'exchange.output @e -> "y" : tensor<24xf32>', zone="external")
X = {"x": np.arange(-12, 12, dtype=np.float32)}


def test_a_value_that_one_operation_leaves_to_another_is_in_the_arena():
    made = machine(exchange_module(INPUT + copied("a", "b", "c", "e") + OUTPUT))
    assert [name for name in "abce" if is_near(made, name)] == ["b", "c"]
    assert made.run(X)["y"].tolist() == X["x"].tolist()


def test_bytes_are_reused_after_their_last_read():
    body = copied("a", "b") + step("one", relu("b", "c")) + copied("c", "d")
    made = machine(exchange_module(INPUT + body + step("two", relu("d", "e")) + OUTPUT))
    assert share(made, "b", "d")
    assert not share(made, "b", "c")
    assert not share(made, "c", "d")


def test_a_state_is_kept_on_its_tiles():
    made = machine(exchange_module(INPUT + copied("a", "w", "b", "e") + OUTPUT))
    assert [name for name in "wbe" if is_near(made, name)] == ["b"]


def test_a_value_lives_in_the_arena_until_its_last_read():
    twice = copied("a", "b", "c") + step("more", move("b", "d")) + step("last", move("d", "e"))
    made = machine(exchange_module(INPUT + twice + OUTPUT))
    assert [name for name in "bd" if is_near(made, name)] == ["b", "d"]
    assert not share(made, "b", "d")
    assert made.run(X)["y"].tolist() == X["x"].tolist()


def test_a_value_written_twice_stays_on_its_tiles():
    twice = copied("a", "b", "c") + step("more", move("c", "b")) + copied("b", "e")
    made = machine(exchange_module(INPUT + twice + OUTPUT))
    assert not is_near(made, "b")
    assert is_near(made, "c")
    assert made.run(X)["y"].tolist() == X["x"].tolist()


def test_a_value_read_in_a_loop_stays_on_its_tiles():
    loop = f"control.repeat 2 () : () -> () {{ {copied('b', 'e')} control.yield }}\n"
    made = machine(exchange_module(INPUT + copied("a", "b") + loop + OUTPUT))
    assert not is_near(made, "b")
    assert made.run(X)["y"].tolist() == X["x"].tolist()


def test_a_value_that_lives_through_a_loop_stays_on_its_tiles():
    # The loop's own variables take the bytes of the arena.
    loop = f"control.repeat 2 () : () -> () {{ {copied('c', 'd', 'w')} control.yield }}\n"
    made = machine(exchange_module(INPUT + copied("a", "b") + loop + copied("b", "e") + OUTPUT))
    assert [name for name in "bd" if is_near(made, name)] == ["d"]
    assert made.run(X)["y"].tolist() == X["x"].tolist()


def test_blocks_that_would_share_cache_sets_are_padded_by_a_cache_line():
    layout = "<[512 by 4] (d0) of [512]>"
    variables = "".join(
        variable(name, at, layout).replace("24xf32", "512xf32")
        for name, at in (("f", 512), ("g", 1024), ("h", 1536))
    )
    body = INPUT.replace("@a", "@f") + copied("f", "g", "h") + OUTPUT.replace("@e", "@h")
    made = machine(exchange_module(body.replace("24xf32", "512xf32"), variables))
    assert is_near(made, "g")
    assert made.blocks["g"].placed.memory.strides == (512 + 64, 1)
    x = np.arange(512, dtype=np.float32)
    assert made.run({"x": x})["y"].tolist() == x.tolist()


def test_moves_of_a_superstep_come_before_its_vertices():
    # What the vertices write may lie neither over what they read nor over what is moved.
    body = INPUT + copied("a", "b") + step("both", relu("c", "d"), move("b", "c"))
    made = machine(exchange_module(body + copied("d", "e") + OUTPUT))
    assert is_near(made, "c")
    assert not share(made, "b", "c")
    assert not share(made, "c", "d")
    assert made.run(X)["y"].tolist() == np.maximum(X["x"], 0).tolist()


def test_reading_a_variable_that_is_not_kept_is_refused():
    module = exchange_module(INPUT + copied("a", "b", "e") + OUTPUT)
    made = machine(module)
    made.run(X)
    with pytest.raises(ValueError, match="@b: FusedBinder does not keep variables that only oper"):
        made.read("b")
    assert made.read("e").tolist() == X["x"].tolist()
    whole = machine(module, FastBinder)
    whole.run(X)
    assert whole.read("b").tolist() == X["x"].tolist()


@settings(max_examples=25, deadline=None)
@given(planned_programs())
def test_no_variable_lies_over_one_that_is_still_read(program: Program):
    module = lowered(program)
    made = Machine(module, resolve_target(program.target), binder=FusedBinder)
    ops = [
        op
        for step in module.walk()
        if isinstance(step, Superstep)
        for kind in (Copy, Vertices)
        for op in step.body.block.ops
        if isinstance(op, kind)
    ]
    written = {op.destination: i for i, op in enumerate(ops)}
    lives = [
        (written[name], i, name)
        for i, op in enumerate(ops)
        for name in op.sources
        if name in written and is_near(made, name)
    ]
    for first, last, name in lives:
        for begin, end, other in lives:
            if name != other and begin <= last and first <= end:
                assert not share(made, name, other)
