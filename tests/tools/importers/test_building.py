"""The classes with which every front end builds its program."""

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import IntAttr, StringAttr, i32
from xdsl.ir import SSAValue

from abele.backends.reference import run_reference
from abele.dialects import nn
from abele.dialects.levels import NN
from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.ir.provenance import origin
from abele.ir.upstream import FileLineColLoc, ModuleOp
from abele.ir.verify import verify
from abele.tools.importers.batching import Batch, Shapes
from abele.tools.importers.bounded import ordered_first
from abele.tools.importers.building import Known, NodeBuilder, ProgramBuilder
from abele.tools.importers.errors import NotConstantError
from abele.tools.importers.lengths import Length
from abele.tools.importers.padding import sized


def new_program() -> ProgramBuilder:
    return ProgramBuilder(context=AbeleContext(), place="net")


def never() -> np.ndarray:
    raise AssertionError("nobody reads this weight")


def doubled(program: ProgramBuilder, name: str, value: SSAValue) -> SSAValue:
    node = NodeBuilder(name, program)
    factor = node.constant(2, value)
    result = node.add(nn.MulOp(value, factor))
    node.finish([value], [result])
    return result


def computing(module: ModuleOp) -> list[str]:
    return [op.name for op in module.walk() if op.name.startswith("nn.")]


def test_a_program_has_what_its_outputs_read_and_nothing_else():
    program = new_program()
    x = program.add_input("x", (3,), np.float32)
    _ = program.add_input("unused", (2,), np.int32)
    w = program.weight("w", (3,), np.dtype(np.float32), lambda: np.arange(3, dtype=np.float32))
    _ = program.weight("never", (3,), np.dtype(np.float32), never)
    node = NodeBuilder("sum", program)
    total = node.add(nn.AddOp(x, program.emitted(w)))
    node.finish([x, w], [total])
    _ = doubled(program, "dead", total)
    module = program.module([("y", total)])
    verify(module, NN)
    assert computing(module) == ["nn.state", "nn.load", "nn.add"]
    given = {"x": np.ones(3, np.float32), "unused": np.zeros(2, np.int32)}
    np.testing.assert_array_equal(run_reference(module, given).outputs["y"], [1, 2, 3])


def test_an_array_of_a_weight_is_read_once():
    calls: list[int] = []

    def read() -> np.ndarray:
        calls.append(1)
        return np.ones(2, np.float32)

    weight = new_program().weight("w", (2,), np.dtype(np.float32), read)
    assert weight.make() is weight.make()
    assert calls == [1]


def test_operations_get_the_name_of_their_node_and_the_line_that_it_comes_from():
    program = new_program()
    x = program.add_input("x", (3,), np.float32)
    line = FileLineColLoc(StringAttr("net.py"), IntAttr(7), IntAttr(1))
    node = NodeBuilder("layer", program, line)
    factor = node.constant(2, x)
    product = node.add(nn.MulOp(x, factor))
    node.finish([x], [product])
    assert [origin(op) for op in node.ops] == ["layer/constant", "layer"]
    assert [op.location.location for op in node.ops] == [line, line]


def test_an_input_beyond_the_limits_is_refused():
    with pytest.raises(InputError, match=r"^net: input 'x': 40 axes; a tensor has at most"):
        new_program().add_input("x", (1,) * 40, np.float32)


def test_a_value_that_must_be_constant_names_the_inputs_behind_it():
    program = new_program()
    x, y = (program.add_input(name, (3,), np.float32) for name in "xy")
    node = NodeBuilder("sum", program)
    total = node.add(nn.AddOp(doubled(program, "d", x), y))
    with pytest.raises(NotConstantError, match=r"shape 's' depends on inputs \(y, x\)") as caught:
        raise node.not_constant("shape 's'", [total])
    assert caught.value.inputs == ("y", "x")
    assert "--value y=X.npy --value x=X.npy" in str(caught.value)


def test_an_output_whose_size_depends_on_values_brings_its_size():
    program = new_program()
    x = program.add_input("x", (4,), np.bool_)
    node = NodeBuilder("where", program)
    places, count = ordered_first(node, x)
    node.finish([x], [sized(node, places, {0: count})])
    assert isinstance(count, Length)
    assert str(node.size_refused("the size of axis 0 of operand 0 'p'", count)).endswith(
        "the size of axis 0 of operand 0 'p' depends on inputs (x), which is not supported; need "
        "a constant, or its values: --value x=X.npy, or values={'x': array} in Python"
    )
    module = program.module([("p", places), ("again", places)])
    outputs = run_reference(module, {"x": np.array([False, True, False, True])}).outputs
    assert [*outputs] == ["p", "again", "p, size of axis 0"]
    assert outputs["p, size of axis 0"] == 2
    np.testing.assert_array_equal(outputs["p"][:2], [1, 3])


def batched(build: Callable[[ProgramBuilder, int], SSAValue], old: int, new: int) -> ModuleOp:
    """The program for another number of samples, built twice as by a front end."""
    shapes = Shapes()
    for count, watcher in ((old, shapes), (new, Batch(old, new, shapes, {"x"}))):
        program = ProgramBuilder(context=AbeleContext(), place="net", watcher=watcher)
        result = build(program, count)
    return program.module([("y", result)])


def reshaping(program: ProgramBuilder, count: int) -> SSAValue:
    x = program.add_input("x", (count, 3), np.float32)
    node = NodeBuilder("flat", program)
    flat = node.reshape(x, node.reshaped((count, 3)) or (6,))
    node.finish([x], [flat])
    return flat


def summing(program: ProgramBuilder, count: int) -> SSAValue:
    x = program.add_input("x", (count, 3), np.float32)
    node = NodeBuilder("sum", program)
    total = node.add(nn.ReduceOp(x, "sum", [0]))
    node.finish([x], [total])
    return total


def test_a_reshape_to_a_constant_shape_follows_the_samples():
    module = batched(reshaping, 2, 5)
    x = np.arange(15, dtype=np.float32).reshape(5, 3)
    np.testing.assert_array_equal(run_reference(module, {"x": x}).outputs["y"], np.arange(15))


def test_a_sum_of_all_samples_is_refused():
    with pytest.raises(InputError, match=r"^net: --batch 5: node 'sum': the node mixes"):
        batched(summing, 2, 5)


def test_a_known_value_needs_no_operation():
    program = new_program()
    value = Known.of("k", np.array(3, np.int32))
    assert program.known(value) == 3
    assert program.states == []
    assert nn.element_of(program.emitted(value)) == i32
