import re
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

from abele.backends.target import resolve_target
from abele.dialects import nn
from abele.dialects.levels import NN
from abele.ir.text import parse_module, print_module
from abele.ir.upstream import Context, ModulePass
from abele.ir.verify import verify
from abele.passes.take_known_rows import TakeKnownRows, known_lookups
from abele.tools.driver.compile import compile_model
from abele.tools.driver.context import new_context
from abele.tools.testing import Miscompiled, check_pass
from abele.tools.testing.generators.program import Program
from abele.tools.testing.search.contracts import with_apply

MACHINE = "mk2:64"

BEFORE = """
builtin.module {
  func.func @main(%x: tensor<64x32xf32>) -> tensor<2x2x32xf32> {
    %0 = nn.tanh %x : (tensor<64x32xf32>) -> tensor<64x32xf32>
    %1 = nn.constant <[5, -1, 0, 5] : tensor<2x2xi32>> : tensor<2x2xi32>
    %2 = nn.gather %0, %1 axis 0 : (tensor<64x32xf32>, tensor<2x2xi32>) -> tensor<2x2x32xf32>
    func.return %2 : tensor<2x2x32xf32>
  }
}
"""

AFTER = """
builtin.module {
  func.func @main(%x: tensor<64x32xf32>) -> tensor<2x2x32xf32> {
    %0 = nn.tanh %x : (tensor<64x32xf32>) -> tensor<64x32xf32>
    %1 = nn.constant <[5, -1, 0, 5] : tensor<2x2xi32>> : tensor<2x2xi32>
    %2 = nn.take %0 axis 0 places [5, 63, 0, 5] value 0.0 : (tensor<64x32xf32>) -> tensor<4x32xf32>
    %3 = nn.reshape %2 to [2, 2, 32] : (tensor<4x32xf32>) -> tensor<2x2x32xf32>
    func.return %3 : tensor<2x2x32xf32>
  }
}
"""


def rewritten(text: str) -> str:
    module = parse_module(text, new_context())
    TakeKnownRows(MACHINE).apply(new_context(), module)
    verify(module, NN)
    return without_places(module)


def without_places(module: ModuleOp) -> str:
    return re.sub(r" ?loc\(.*", "", print_module(module, numbers=8))


def plain(text: str) -> str:
    return without_places(parse_module(text, new_context()))


def test_constant_rows_are_moved():
    assert rewritten(BEFORE) == plain(AFTER)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # An index out of range is a fault of the run.
        ("<[5,", "<[64,"),
        ("<[5, -1", "<[5, -65"),
        # The planner puts an input where a lookup reads it.
        ("nn.gather %0", "nn.gather %x"),
        # A decision that exists is kept.
        ("axis 0 :", "axis 0 {group = 0} :"),
    ],
)
def test_other_lookups_stay(old: str, new: str):
    text = BEFORE.replace(old, new)
    assert text != BEFORE
    assert rewritten(text) == plain(text)


def test_a_lookup_stays_where_it_is_cheaper_with_the_function_that_reads_it():
    """All but one of the rows stay on their tiles, and a movement would be a superstep more."""
    x = TensorType(f32, (8, 49, 49))
    rows = np.arange(20, dtype=np.int32)
    stays, moves = (looked_up(x, rows, 1, reader=reader) for reader in (True, False))
    for module in (stays, moves):
        TakeKnownRows("mk2:16").apply(new_context(), module)
    assert known_lookups(stays)
    assert not known_lookups(moves)


def looked_up(given: TensorType, rows: np.ndarray, axis: int, *, reader: bool) -> ModuleOp:
    """@main looks rows up in a function of its argument, and may compute a function of them."""
    block = Block(arg_types=[given])
    table, index = nn.TanhOp(block.args[0]), nn.ConstantOp(rows)
    found = nn.GatherOp(table.result, index.result, axis)
    ops = [table, index, found]
    if reader:
        ops.append(nn.TanhOp(found.result))
    block.add_ops([*ops, ReturnOp(ops[-1].result)])
    types = [given], [ops[-1].result.type]
    return ModuleOp([FuncOp("main", types, Region(block))])


def some_lookup(seed: int) -> Program:
    """Rows of any axis, named from the front and the end, in any order."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 7, rng.integers(1, 4)))
    axis = int(rng.integers(len(shape)))
    count = tuple(int(n) for n in rng.integers(1, 4, rng.integers(0, 3)))
    rows = rng.integers(-shape[axis], shape[axis], count).astype(rng.choice([np.int32, np.int64]))
    module = looked_up(TensorType(f32, shape), rows, axis, reader=bool(rng.integers(2)))
    x = rng.standard_normal(shape).astype(np.float32)
    return Program(module, new_context(), {"arg0": x}, resolve_target("tiny:4"))


LOOKUPS = st.integers(0, 500).map(some_lookup)


def test_the_kit_finds_no_difference_in_moved_rows():
    report = check_pass(TakeKnownRows("tiny:4"), programs=LOOKUPS, examples=10, seed=0)
    assert report.changed > report.examples // 2


def next_row(op: nn.TakeOp) -> None:
    """Each row is the one after it."""
    places = (op.places.array + 1) % nn.shape_of(op.operand)[op.axis.value.data]
    op.properties["places"] = nn.TakeOp(op.operand, places, op.axis.value.data).places


def from_the_end(op: nn.TakeOp) -> None:
    """A row that is named from the end is one of the value."""
    size = nn.shape_of(op.operand)[op.axis.value.data]
    places = np.where(op.places.array == size - 1, -1, op.places.array)
    op.properties["places"] = nn.TakeOp(op.operand, places, op.axis.value.data).places


def damaged(damage: Callable[[nn.TakeOp], None]) -> ModulePass:
    tested = TakeKnownRows("tiny:4")

    def apply(ctx: Context, op: ModuleOp) -> None:
        tested.apply(ctx, op)
        for each in [each for each in op.walk() if isinstance(each, nn.TakeOp)]:
            damage(each)

    return with_apply(tested, apply)


@pytest.mark.parametrize("damage", [next_row, from_the_end])
def test_the_kit_finds_a_planted_bug(damage: Callable[[nn.TakeOp], None]):
    with pytest.raises(Miscompiled) as found:
        _ = check_pass(damaged(damage), programs=LOOKUPS, examples=200, seed=0, reduce_seconds=0)
    assert found.value.examples <= 20


def test_a_compile_moves_constant_rows():
    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("Tanh", ["x"], ["t"], "tanh"),
        helper.make_node("Gather", ["t", "rows"], ["y"], "rows", axis=1),
    ]
    given, made = (
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4, size, 8])
        for name, size in (("x", 32), ("y", 12))
    )
    rows = numpy_helper.from_array(rng.integers(-32, 32, 12), "rows")
    graph = helper.make_graph(nodes, "net", [given], [made], [rows])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    own = compile_model(model, MACHINE, cache=False)
    other = compile_model(model, MACHINE, cache=False, passes="nn,partition,tile,exchange")
    assert own.profile["cycles"] < other.profile["cycles"]
    x = rng.normal(size=(4, 32, 8)).astype(np.float32)
    np.testing.assert_array_equal(own.run({"x": x})["y"], other.run({"x": x})["y"])
